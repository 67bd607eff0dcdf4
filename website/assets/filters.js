// The filters of ranking, heat map and plots. They are part of the address, so that a link shows the same selection.
"use strict";
(function () {
  const { make } = srearena;
  const FIELDS = [["family", "Family"], ["difficulty", "Difficulty"], ["application", "Application"], ["kind", "Kind"]];

  function options(values, chosen, all) {
    const known = [...new Set(values.filter((v) => v))].sort();
    return [make("option", { value: "" }, all), known.map((v) => make("option", { value: v, selected: v === chosen }, v))];
  }

  function control(label, name, children, go, query) {
    const box = make("select", { id: "filter-" + name, onchange: () => go({ ...query, [name]: box.value, page: "" }) }, children);
    return make("label", { for: "filter-" + name }, label, box);
  }

  srearena.filters = function (query, go) {
    const { index } = srearena;
    const fields = FIELDS.filter(([name]) => new Set(index.incidents.map((i) => i[name])).size > 1 || query[name]);
    const metric = query.metric || index.ranking_metric;
    const search = make("input", { id: "filter-q", type: "search", value: query.q || "",
      onchange: () => go({ ...query, q: search.value, page: "" }) });
    return make("form", { class: "filters", "aria-label": "Selection", onsubmit: (event) => event.preventDefault() },
      control("Metric", "metric", index.metrics.map((m) => make("option", { value: m, selected: m === metric }, m)), go, query),
      fields.map(([name, title]) => control(title, name, options(index.incidents.map((i) => i[name]), query[name], "all"), go, query)),
      control("Model", "model", options(index.agents.map((a) => a.model), query.model, "all"), go, query),
      make("label", { for: "filter-q" }, "Agent", search),
      make("button", { type: "button", onclick: () => go({}) }, "Reset"));
  };

  // Which incidents and agents are selected, and the chosen metric of each agent over the selection.
  srearena.selection = async function (query) {
    const { index, statistics } = srearena;
    const metric = index.metrics.includes(query.metric) ? query.metric : index.ranking_metric;
    const places = index.incidents.map((_, i) => i).filter((i) => FIELDS.every(([n]) => !query[n] || index.incidents[i][n] === query[n]));
    const word = (query.q || "").toLowerCase();
    const agents = index.agents.map((_, i) => i).filter((i) => {
      const agent = index.agents[i];
      return (!query.model || agent.model === query.model) && (!word || (agent.name + " " + agent.model).toLowerCase().includes(word));
    });
    const whole = places.length === index.incidents.length;
    const matrix = !index.agents.length ? [] : whole && !query.matrix ? null : await srearena.load("scores/" + srearena.slug(metric));
    const rows = agents.map((i) => {
      const agent = index.agents[i];
      if (whole) {
        const [mean, low, high] = agent.metrics[metric] || [null, null, null];
        return { i, agent, mean, low, high };
      }
      const values = statistics.known(places.map((p) => matrix[i][p]));
      return { i, agent, mean: statistics.mean(values), values };
    });
    return { metric, places, rows, whole, matrix };
  };
  srearena.slug = (metric) => metric.replace(/[^A-Za-z0-9_@^.-]/g, "_");
})();
