// The ranking, with differences and their significance.
"use strict";
(function () {
  const { make, number, link } = srearena;
  const PAGE = 100;
  const COLUMNS = [
    { key: "name", title: "Agent", of: (r) => r.agent.name },
    { key: "model", title: "Model", of: (r) => r.agent.model, wide: true },
    { key: "mean", title: "Score", number: true, of: (r) => r.mean },
    { key: "pass", title: "pass@1", number: true, of: (r) => r.figures.pass1, wide: true },
    { key: "passk", title: "pass@", number: true, of: (r) => r.figures.passk, wide: true, k: true },
    { key: "passevery", title: "pass^", number: true, of: (r) => r.figures.passevery, wide: true, k: true },
    { key: "runs", title: "Runs", number: true, of: (r) => r.figures.graded },
    { key: "cost", title: "USD per run", number: true, of: (r) => r.figures.mean_cost },
    { key: "seconds", title: "Time per run", number: true, of: (r) => r.figures.seconds },
  ];

  function ordered(rows, key, down) {
    const column = COLUMNS.find((c) => c.key === key) || COLUMNS[2];
    return [...rows].sort((a, b) => {
      const x = column.of(a), y = column.of(b);
      const missing = (x === null || x === undefined) - (y === null || y === undefined);
      if (missing) return missing; // rows without a value are last in both directions
      const order = x < y ? -1 : x > y ? 1 : a.agent.name < b.agent.name ? -1 : 1;
      return down && x !== y ? -order : order;
    });
  }

  // Whether an agent is better than the next in rank: of all results as the leaderboard tested it, of a selection here.
  function noise(row, chosen) {
    const test = row.agent.against_next, metric = chosen.metric === srearena.index.ranking_metric;
    if (!row.next || (chosen.whole && !(test && metric))) return "";
    const p = chosen.whole ? test.p : srearena.compared(chosen.matrix, chosen.places, row.i, row.next.i).p;
    if (p === null) return "";
    const luck = chosen.whole ? test.within_noise : p >= 0.05;
    return make("span", { class: luck ? "mark" : "good", title: "against " + row.next.agent.name + ", p = " + number(p) },
      luck ? "within noise of the next" : "ahead of the next");
  }

  function runs({ agent, figures }, whole) {
    if (!whole) return make("span", {}, figures.graded + "/" + figures.planned);
    const left = [];
    if (agent.excluded) left.push(agent.excluded + " spoilt by the environment");
    if (agent.missing) left.push(agent.missing + " not run or judged");
    const failed = Object.entries(agent.outcomes).filter(([k]) => !["answered", "environment_error", "not_run"].includes(k));
    for (const [outcome, count] of failed) left.push(count + " " + outcome.replaceAll("_", " "));
    return make("span", { title: left.join(", ") || "all answered" }, agent.graded + "/" + agent.planned, left.length ? "*" : "");
  }

  srearena.pages.ranking = async function (route) {
    const { index, statistics } = srearena;
    const go = (query) => srearena.go([], query);
    const chosen = await srearena.selection(route.query);
    const key = route.query.sort || "mean";
    const down = (route.query.order || (key === "mean" || key.startsWith("pass") ? "down" : "up")) === "down";
    const rows = ordered(chosen.rows, key, down);
    const page = Math.max(0, parseInt(route.query.page || "0", 10) || 0);
    const shown = rows.slice(page * PAGE, page * PAGE + PAGE);
    for (const row of shown) if (row.values) [row.low, row.high] = statistics.interval(row.values);
    const head = COLUMNS.map((c) => make("th", { scope: "col", class: (c.number ? "number " : "") + (c.wide ? "wide" : ""),
      "aria-sort": c.key === key ? (down ? "descending" : "ascending") : "none" },
      make("button", { type: "button", "data-sort": c.key, onclick: () => go({ ...route.query, sort: c.key,
        order: c.key === key ? (down ? "up" : "down") : "", page: "" }) }, c.title + (c.k ? index.k : ""), c.key === key ? (down ? " ▾" : " ▴") : "")));
    head.splice(3, 0, make("th", { scope: "col", class: "wide" }, "95 % interval", srearena.scale()));
    const body = shown.map((row) => {
      const agent = row.agent;
      return make("tr", {},
        make("td", { class: "number" }, row.mean === null ? "–" : row.rank),
        make("td", { class: "name" }, make("a", { href: link(["agent", agent.name]) }, agent.name), " ",
          make("div", { class: "soft" }, noise(row, chosen))),
        make("td", { class: "wide" }, agent.model),
        make("td", { class: "number" }, number(row.mean)),
        make("td", { class: "wide" }, srearena.range(row.low, row.mean, row.high)),
        make("td", { class: "number wide" }, number(row.figures.pass1, 2)),
        make("td", { class: "number wide" }, number(row.figures.passk, 2)),
        make("td", { class: "number wide" }, number(row.figures.passevery, 2)),
        make("td", { class: "number" }, runs(row, chosen.whole)),
        make("td", { class: "number" }, srearena.money(row.figures.mean_cost)),
        make("td", { class: "number" }, srearena.seconds(row.figures.seconds)));
    });
    const about = chosen.places.length + " " + srearena.kindTitle(chosen.kind) + ", " + rows.length + " agents, " + index.runs +
      (index.runs === 1 ? " run" : " runs") + " each; # is the rank by " + chosen.metric + ", however the table is sorted";
    return { title: "Ranking", content: [srearena.front(chosen, route.query), make("h2", {}, "Ranking"), srearena.filters(route.query, go),
      rows.length ? make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Ranking" },
        make("table", { id: "ranking" }, make("caption", {}, about),
          make("thead", {}, make("tr", {}, make("th", { scope: "col", class: "number" }, "#"), head)), make("tbody", {}, body)))
        : make("p", { id: "empty" }, index.agents.length ? "Nothing fits this selection." : "There are no results yet."),
      srearena.pager(page, Math.ceil(rows.length / PAGE), (to) => go({ ...route.query, page: to || "" }))] };
  };

  srearena.pager = function (page, pages, to) {
    if (pages < 2) return null;
    return make("div", { class: "bar", role: "navigation", "aria-label": "Pages of the table" },
      make("button", { type: "button", disabled: page === 0, onclick: () => to(page - 1) }, "Previous"),
      "Page " + (page + 1) + " of " + pages,
      make("button", { type: "button", id: "next-page", disabled: page + 1 >= pages, onclick: () => to(page + 1) }, "Next"));
  };
})();
