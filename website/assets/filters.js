// The filters of ranking, breakdown, heat map, plots and comparison. They are part of the address, so that a link shows
// the same selection. Recorded incidents and live problems are graded differently: a selection has one kind only.
"use strict";
(function () {
  const { make } = srearena;
  const FIELDS = [["family", "Family"], ["difficulty", "Difficulty"], ["application", "Application"]];
  const KINDS = { snapshot: "recorded incidents", live: "live problems" };
  const STAGES = ["resolved", "detection", "localization", "analysis", "diagnosis", "mitigation"];

  srearena.fields = FIELDS;
  srearena.kindTitle = (kind) => KINDS[kind] || kind || "incidents";
  srearena.kinds = () => [...new Set(srearena.index.incidents.map((i) => i.kind))].sort().reverse();
  srearena.kindOf = (query) => { const kinds = srearena.kinds(); return kinds.includes(query.kind) ? query.kind : kinds[0]; };

  // The metrics that incidents of a kind have.
  srearena.metricsOf = (kind) => srearena.index.metrics.filter((m) => {
    const kinds = (srearena.index.metric_kinds || {})[m];
    return !kinds || kinds.includes(kind);
  });
  srearena.metricOf = (query) => {
    const metrics = srearena.metricsOf(srearena.kindOf(query));
    return metrics.includes(query.metric) ? query.metric : srearena.index.ranking_metric;
  };

  function options(values, chosen, all) {
    const known = [...new Set(values.filter((v) => v))].sort();
    return [make("option", { value: "" }, all), known.map((v) => make("option", { value: v, selected: v === chosen }, v))];
  }

  function control(label, name, children, go, query) {
    const box = make("select", { id: "filter-" + name, onchange: () => go({ ...query, [name]: box.value, page: "" }) }, children);
    return make("label", { for: "filter-" + name }, label, box);
  }

  srearena.metricChoice = function (query, go) {
    const chosen = srearena.metricOf(query);
    const metrics = srearena.metricsOf(srearena.kindOf(query));
    const judged = metrics.filter((m) => m !== srearena.index.ranking_metric && !STAGES.includes(m));
    const groups = [["Ranked by", [srearena.index.ranking_metric]], ["Answers, by the judge", judged], ["Stages", metrics.filter((m) => STAGES.includes(m))]];
    return control("Metric", "metric", groups.filter(([, each]) => each.length).map(([title, each]) =>
      make("optgroup", { label: title }, each.map((m) => make("option", { value: m, selected: m === chosen }, m)))), go, query);
  };

  srearena.filters = function (query, go, agents = true) {
    const { index } = srearena;
    const kind = srearena.kindOf(query);
    const incidents = index.incidents.filter((i) => i.kind === kind);
    const fields = FIELDS.filter(([name]) => new Set(incidents.map((i) => i[name])).size > 1 || query[name]);
    const search = make("input", { id: "filter-q", type: "search", value: query.q || "",
      onchange: () => go({ ...query, q: search.value, page: "" }) });
    return make("form", { class: "filters", "aria-label": "Selection", onsubmit: (event) => event.preventDefault() },
      srearena.kinds().length > 1 ? control("Kind", "kind", srearena.kinds().map((k) => make("option", { value: k, selected: k === kind }, srearena.kindTitle(k))), go, query) : null,
      srearena.metricChoice(query, go),
      fields.map(([name, title]) => control(title, name, options(incidents.map((i) => i[name]), query[name], "all"), go, query)),
      agents ? control("Model", "model", options(index.agents.map((a) => a.model), query.model, "all"), go, query) : null,
      agents ? make("label", { for: "filter-q" }, "Agent", search) : null,
      make("button", { type: "button", onclick: () => go({}) }, "Reset"));
  };

  // Runs of one agent over the selected incidents: how many, and what they cost.
  function figures(totals, places, k) {
    const sum = { graded: 0, runs: 0, cost: 0, costed: 0, seconds: 0, timed: 0 };
    const first = [], some = [], all = [];
    for (const p of places) {
      if (!totals[p]) continue;
      const [graded, runs, passed, cost, costed, seconds, timed] = totals[p];
      sum.graded += graded; sum.runs += runs; sum.cost += cost; sum.costed += costed; sum.seconds += seconds; sum.timed += timed;
      if (graded) first.push(passed / graded);
      if (graded >= k) { some.push(1 - chance(graded - passed, graded, k)); all.push(chance(passed, graded, k)); }
    }
    const { mean } = srearena.statistics;
    return { graded: sum.graded, planned: sum.runs, pass1: mean(first), passk: mean(some), passevery: mean(all),
      mean_cost: sum.costed ? sum.cost / sum.costed : null, seconds: sum.timed ? sum.seconds / sum.timed : null };
  }

  // The chance that k runs, drawn from n, are all among `hits`.
  function chance(hits, n, k) {
    let share = 1;
    for (let i = 0; i < k; i++) share *= Math.max(0, hits - i) / (n - i);
    return share;
  }

  // Which incidents and agents are selected, with rank, metric and figures of each agent over the selection.
  srearena.selection = async function (query) {
    const { index, statistics } = srearena;
    const metric = srearena.metricOf(query), kind = srearena.kindOf(query);
    const places = index.incidents.map((_, i) => i).filter((i) => index.incidents[i].kind === kind &&
      FIELDS.every(([n]) => !query[n] || index.incidents[i][n] === query[n]));
    const word = (query.q || "").toLowerCase();
    const whole = places.length === index.incidents.length;
    const some = index.agents.length > 0;
    const matrix = some && (!whole || query.matrix) ? await srearena.load("scores/" + srearena.slug(metric)) : null;
    const totals = some && !whole ? await srearena.load("totals/runs") : null;
    const every = index.agents.map((agent, i) => {
      if (whole) {
        const [mean, low, high] = agent.metrics[metric] || [null, null, null];
        return { i, agent, mean, low, high, figures: agent };
      }
      const values = statistics.known(places.map((p) => matrix[i][p]));
      return { i, agent, mean: statistics.mean(values), values, figures: figures(totals[i], places, index.k) };
    });
    every.sort((a, b) => (b.mean ?? -1) - (a.mean ?? -1) || (a.agent.name < b.agent.name ? -1 : 1));
    every.forEach((row, n) => {
      const before = every[n - 1];
      row.rank = before && before.mean === row.mean ? before.rank : n + 1;
      row.next = every[n + 1] || null;
    });
    const rows = every.filter(({ agent }) =>
      (!query.model || agent.model === query.model) && (!word || (agent.name + " " + agent.model).toLowerCase().includes(word)));
    return { metric, kind, places, rows, whole, matrix };
  };
  srearena.slug = (metric) => metric.replace(/[^A-Za-z0-9_@^.-]/g, "_");
})();
