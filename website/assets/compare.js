// Compare any number of agents: every pair on the incidents that both have, and one table of all.
"use strict";
(function () {
  const { make, number, link } = srearena;
  const MOST = 8;

  function names(query) {
    const { agents } = srearena.index;
    const asked = [...(query.agents || "").split(","), query.a, query.b].filter((name) => name);
    for (const name of asked) if (!agents.some((one) => one.name === name)) throw new Error("there is no agent " + name);
    return [...new Set(asked.length > 1 ? asked : [...asked, ...agents.map((one) => one.name)].slice(0, 2))].slice(0, MOST);
  }

  srearena.pages.compare = async function (route) {
    const { index, statistics } = srearena;
    if (index.agents.length < 2) return { title: "Compare", content: [make("h1", {}, "Compare agents"), make("p", { id: "empty" }, "There are fewer than two agents.")] };
    const chosen = names(route.query);
    const rest = Object.fromEntries(["kind", "metric", "family", "difficulty", "application"].map((key) => [key, route.query[key]]).filter(([, value]) => value));
    const go = (agents, more) => srearena.go(["compare"], { agents: agents.join(","), ...rest, ...more });
    const { matrix, places, metric, kind } = await srearena.selection({ ...rest, matrix: true });
    const at = chosen.map((name) => index.agents.findIndex((one) => one.name === name));
    const pairs = at.flatMap((a, n) => at.slice(n + 1).map((b) => ({ a, b, ...srearena.compared(matrix, places, a, b) })));
    const corrected = statistics.holm(pairs.map((pair) => pair.p));
    const name = (i) => index.agents[i].name;
    const add = make("select", { id: "compare-add", onchange: () => go([...chosen, add.value]) }, make("option", { value: "" }, "choose"),
      index.agents.filter((one) => !chosen.includes(one.name)).map((one) => make("option", { value: one.name }, one.name)));
    const verdicts = pairs.map((pair, n) => {
      if (!pair.shared.length) return make("li", { class: "verdict" }, name(pair.a) + " and " + name(pair.b) + " share no graded incident.");
      const [low, high] = statistics.interval(pair.differences, 2000);
      const [first, second, sign] = pair.difference >= 0 ? [pair.a, pair.b, 1] : [pair.b, pair.a, -1];
      const [from, to] = sign > 0 ? [low, high] : [-high, -low];
      return make("li", { class: "verdict" }, "Over " + pair.shared.length + " shared incidents " + name(first) + " scores " + number(sign * pair.difference) +
        " more than " + name(second) + " (95 % interval " + number(from) + " to " + number(to) + ", p = " + number(corrected[n]) + "): ",
        make("strong", {}, corrected[n] < 0.05 ? "more than noise." : "within noise."));
    });
    const shared = places.filter((p) => at.some((i) => typeof matrix[i][p] === "number"));
    const spread = (p) => { const values = statistics.known(at.map((i) => matrix[i][p])); return Math.max(...values) - Math.min(...values); };
    const rows = shared.sort((x, y) => spread(y) - spread(x)).map((p) => [make("a", { href: link(["incident", index.incidents[p].name]) }, index.incidents[p].name),
      ...at.map((i) => make("a", { class: "cell " + srearena.heat(matrix[i][p]), href: link(["run", name(i), index.incidents[p].name, "1"]) }, number(matrix[i][p], 2)))]);
    return { title: "Compare", content: [make("h1", {}, "Compare agents"),
      make("div", { class: "bar", id: "compared" }, chosen.map((one) => make("button", { type: "button", "aria-label": "Remove " + one, disabled: chosen.length < 3, onclick: () => go(chosen.filter((other) => other !== one)) }, one + " ×")),
        chosen.length < MOST ? make("label", { for: "compare-add" }, "add ", add) : null),
      srearena.filters({ ...rest }, (query) => go(chosen, { kind: "", metric: "", family: "", difficulty: "", application: "", ...query }), false),
      make("ul", { id: "verdict" }, verdicts),
      pairs.length > 1 ? make("p", { class: "soft" }, "p-values are corrected for " + pairs.length + " comparisons (Holm).") : null,
      srearena.table(metric + " by incident of " + srearena.kindTitle(kind) + ", largest difference first", [{ title: "Incident", name: true }, ...chosen.map((one) => ({ title: one, number: true }))], rows)] };
  };
})();
