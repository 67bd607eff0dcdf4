// The ranking, with differences and their significance.
"use strict";
(function () {
  const { make, number, link } = srearena;
  const PAGE = 100;
  const COLUMNS = [
    { key: "name", title: "Agent", of: (r) => r.agent.name },
    { key: "model", title: "Model", of: (r) => r.agent.model, wide: true },
    { key: "mean", title: "Score", number: true, of: (r) => r.mean },
    { key: "pass", title: "pass@1", number: true, of: (r) => r.agent.pass1, wide: true },
    { key: "passk", title: "pass@k", number: true, of: (r) => r.agent.passk, wide: true },
    { key: "runs", title: "Runs", number: true, of: (r) => r.agent.graded },
    { key: "cost", title: "USD per run", number: true, of: (r) => r.agent.mean_cost },
    { key: "seconds", title: "Time per run", number: true, of: (r) => r.agent.seconds },
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

  function noise(agent, whole, metric) {
    const test = agent.against_next;
    if (!test || !whole || metric !== srearena.index.ranking_metric) return "";
    return test.within_noise
      ? make("span", { class: "mark", title: "p = " + number(test.p) + ", difference " + number(test.difference) }, "within noise of the next")
      : make("span", { class: "good", title: "p = " + number(test.p) }, "ahead of the next");
  }

  function runs(agent) {
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
        order: c.key === key ? (down ? "up" : "down") : "", page: "" }) }, c.title, c.key === key ? (down ? " ▾" : " ▴") : "")));
    head.splice(3, 0, make("th", { scope: "col", class: "wide" }, "95 % interval"));
    const body = shown.map((row, place) => {
      const agent = row.agent;
      return make("tr", {},
        make("td", { class: "number" }, chosen.whole && key === "mean" && down && chosen.metric === index.ranking_metric ? agent.rank : page * PAGE + place + 1),
        make("td", { class: "name" }, make("a", { href: link(["agent", agent.name]) }, agent.name), " ",
          make("div", { class: "soft" }, noise(agent, chosen.whole, chosen.metric))),
        make("td", { class: "wide" }, agent.model),
        make("td", { class: "number" }, number(row.mean)),
        make("td", { class: "wide" }, srearena.range(row.low, row.mean, row.high)),
        make("td", { class: "number wide" }, number(agent.pass1, 2)),
        make("td", { class: "number wide" }, number(agent.passk, 2)),
        make("td", { class: "number" }, runs(agent)),
        make("td", { class: "number" }, srearena.money(agent.mean_cost)),
        make("td", { class: "number" }, srearena.seconds(agent.seconds)));
    });
    const about = chosen.places.length + " incidents, " + rows.length + " agents, " + index.runs + " runs each, ordered by " + key +
      (chosen.whole ? "" : "; score and interval are those of the selection, the other columns of all incidents");
    return { title: "Ranking", content: [make("h1", {}, "Ranking"), srearena.filters(route.query, go),
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
