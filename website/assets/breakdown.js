// The score of every agent by family, difficulty or application.
"use strict";
(function () {
  const { make, number, link } = srearena;
  const PAGE = 100;

  srearena.pages.breakdown = async function (route) {
    const { index, statistics } = srearena;
    const go = (query) => srearena.go(["breakdown"], query);
    const chosen = await srearena.selection({ ...route.query, matrix: true });
    const by = srearena.fields.some(([name]) => name === route.query.by) ? route.query.by : "family";
    const values = [...new Set(chosen.places.map((p) => index.incidents[p][by] || "not stated"))].sort();
    const groups = values.map((value) => chosen.places.filter((p) => (index.incidents[p][by] || "not stated") === value));
    const page = Math.max(0, parseInt(route.query.page || "0", 10) || 0);
    const box = make("select", { id: "by", onchange: () => go({ ...route.query, by: box.value }) },
      srearena.fields.map(([name, title]) => make("option", { value: name, selected: name === by }, title)));
    const rows = chosen.rows.slice(page * PAGE, page * PAGE + PAGE).map((row) => [row.mean === null ? "–" : row.rank,
      make("a", { href: link(["agent", row.agent.name]) }, row.agent.name), number(row.mean, 2),
      ...groups.map((group) => {
        const mean = statistics.mean(statistics.known(group.map((p) => chosen.matrix[row.i][p])));
        return make("span", { class: "cell " + srearena.heat(mean) }, number(mean, 2));
      })]);
    const columns = [{ title: "#", number: true }, { title: "Agent", name: true }, { title: "All", number: true },
      ...values.map((value, n) => ({ title: value + " (" + groups[n].length + ")", number: true }))];
    return { title: "Breakdown", content: [make("h1", {}, "Where agents are good"), srearena.filters(route.query, go),
      make("p", {}, make("label", { for: "by" }, "By ", box)),
      rows.length && values.length ? srearena.table(chosen.metric + " of " + srearena.kindTitle(chosen.kind) + " by " + by +
        "; in brackets the number of incidents: with few, differences are chance", columns, rows, { id: "breakdown" })
        : make("p", { id: "empty" }, "There is nothing to show."),
      srearena.pager(page, Math.ceil(chosen.rows.length / PAGE), (to) => go({ ...route.query, page: to || "" }))] };
  };
})();
