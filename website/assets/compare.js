// Compare two agents on their common incidents: the difference, its interval, and the p-value.
"use strict";
(function () {
  const { make, number, link } = srearena;

  function choice(label, name, query) {
    const box = make("select", { id: "compare-" + name, onchange: () => srearena.go(["compare"], { ...query, [name]: box.value }) },
      srearena.index.agents.map((agent) => make("option", { value: agent.name, selected: agent.name === query[name] }, agent.name)));
    return make("label", { for: "compare-" + name }, label, box);
  }

  srearena.pages.compare = async function (route) {
    const { index, statistics } = srearena;
    if (index.agents.length < 2) return { title: "Compare", content: [make("h1", {}, "Compare two agents"), make("p", { id: "empty" }, "There are fewer than two agents.")] };
    const query = { a: route.query.a || index.agents[0].name, b: route.query.b || index.agents[1].name, metric: route.query.metric || index.ranking_metric };
    const a = index.agents.findIndex((one) => one.name === query.a), b = index.agents.findIndex((one) => one.name === query.b);
    if (a < 0 || b < 0) throw new Error("there is no agent " + (a < 0 ? query.a : query.b));
    const metric = index.metrics.includes(query.metric) ? query.metric : index.ranking_metric;
    const matrix = await srearena.load("scores/" + srearena.slug(metric));
    const shared = index.incidents.map((_, i) => i).filter((i) => typeof matrix[a][i] === "number" && typeof matrix[b][i] === "number");
    const differences = shared.map((i) => matrix[a][i] - matrix[b][i]);
    const [low, high] = statistics.interval(differences, 4000);
    const p = statistics.permutation(differences);
    const luck = p >= 0.05 || (low <= 0 && high >= 0);
    const metrics = make("select", { id: "compare-metric", onchange: () => srearena.go(["compare"], { ...query, metric: metrics.value }) },
      index.metrics.map((m) => make("option", { value: m, selected: m === metric }, m)));
    const rows = shared.map((i, n) => [i, differences[n]]).sort((x, y) => y[1] - x[1]).map(([i, d]) => [
      make("a", { href: link(["incident", index.incidents[i].name]) }, index.incidents[i].name),
      make("a", { href: link(["run", query.a, index.incidents[i].name, "1"]) }, number(matrix[a][i], 2)),
      make("a", { href: link(["run", query.b, index.incidents[i].name, "1"]) }, number(matrix[b][i], 2)),
      make("span", { class: d > 0 ? "good" : d < 0 ? "bad" : "" }, (d > 0 ? "+" : "") + number(d, 2))]);
    return { title: "Compare", content: [make("h1", {}, "Compare two agents"),
      make("form", { class: "filters", onsubmit: (event) => event.preventDefault() }, choice("First", "a", query), choice("Second", "b", query), make("label", { for: "compare-metric" }, "Metric", metrics)),
      shared.length ? make("p", { id: "verdict" }, "Over " + shared.length + " shared incidents " + query.a + " scores " + number(statistics.mean(differences)) +
        " more than " + query.b + " (95 % interval " + number(low) + " to " + number(high) + ", permutation p = " + number(p) + "): ",
        make("strong", {}, luck ? "within noise." : "more than noise.")) : make("p", { id: "empty" }, "They share no graded incident."),
      srearena.table("By incident, largest difference first", [{ title: "Incident", name: true }, { title: query.a, number: true }, { title: query.b, number: true }, { title: "Difference", number: true }], rows)] };
  };
})();
