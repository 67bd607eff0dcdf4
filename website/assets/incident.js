// The list of incidents, and a page for each: timeline, ground truth, and all answers.
"use strict";
(function () {
  const { make, number, link } = srearena;
  const PAGE = 100;

  srearena.pages.incidents = async function () {
    const { index, statistics } = srearena;
    const matrix = index.agents.length ? await srearena.load("scores/" + srearena.slug(index.ranking_metric)) : [];
    const rows = index.incidents.map((incident, i) => [make("a", { href: link(["incident", incident.name]) }, incident.name),
      incident.kind, incident.family, incident.difficulty, incident.application,
      number(statistics.mean(statistics.known(matrix.map((line) => line[i]))))]);
    return { title: "Incidents", content: [make("h1", {}, "Incidents"), rows.length ? srearena.table(rows.length + " incidents",
      [{ title: "Incident", name: true }, { title: "Kind" }, { title: "Family" }, { title: "Difficulty" }, { title: "Application" },
        { title: "Mean over agents", number: true }], rows) : make("p", { id: "empty" }, "There are no results yet.")] };
  };

  // The graph of one run's answer beside the ground truth; the address selects the run.
  function against(truth, incident, i, runs, route) {
    const { index } = srearena;
    const kept = runs.filter(([, , outcome]) => outcome === "answered").slice(0, 1000);
    if (!kept.length) return make("p", { class: "soft" }, "No run gave an answer.");
    const name = ([a, run]) => index.agents[a].name + " #" + run;
    const chosen = kept.find((one) => name(one) === route.query.answer) || kept[0];
    const box = make("select", { id: "answer-of", onchange: () => srearena.go(["incident", incident.name], { ...route.query, answer: box.value }) },
      kept.map((one) => make("option", { value: name(one), selected: one === chosen }, name(one))));
    const place = make("div", { class: "columns", id: "against" }, srearena.graph("The truth", truth.gt_graph));
    const ready = srearena.load("runs/" + chosen[0] + "-" + i + "-" + chosen[1]).then(
      (run) => place.append(srearena.graph("The answer", run.predicted_graph, new Set((truth.gt_entities || []).map(String)))),
      () => place.append(make("p", { class: "soft" }, "This run was not kept with the results.")));
    return ready.then(() => [make("p", {}, make("label", { for: "answer-of" }, "The answer of ", box)), place]);
  }

  srearena.pages.incident = async function (route) {
    const { index } = srearena;
    const i = index.incidents.findIndex((one) => one.name === route.parts[1]);
    if (i < 0) throw new Error("there is no incident " + route.parts[1]);
    const incident = index.incidents[i];
    const more = await srearena.load("incidents/" + i);
    const facts = [incident.kind, incident.family, incident.difficulty, incident.application].filter((v) => v).join(" · ");
    const page = Math.max(0, parseInt(route.query.page || "0", 10) || 0);
    const rows = more.runs.slice(page * PAGE, page * PAGE + PAGE).map(([a, run, outcome, score, blamed]) => [
      make("a", { href: link(["run", index.agents[a].name, incident.name, String(run)]) }, index.agents[a].name + " #" + run),
      outcome.replaceAll("_", " "), number(score), blamed.join(", ") || "–"]);
    const beside = await against(more.truth, incident, i, more.runs, route);
    return { title: incident.name, content: [
      make("h1", {}, incident.title || incident.name), make("p", { class: "soft" }, facts),
      make("details", { id: "truth", open: route.query.answer ? "" : null }, make("summary", {}, "What was true (this gives the answer away)"),
        make("ul", {}, (more.truth.statements || []).map((text) => make("li", {}, text))),
        beside),
      srearena.charts(more.charts),
      make("h2", {}, "Timeline"),
      more.timeline.length ? srearena.table("What the recording shows, first to last", [{ title: "Time (UTC)", number: true }, { title: "Source" }, { title: "Object", name: true }, { title: "What" }],
        more.timeline.map((e) => [srearena.moment(e.time), e.source, e.entity, e.what])) : make("p", { class: "soft" }, incident.kind === "live" ? "This is a live problem: every run has its own timeline." : "There is no timeline."),
      make("h2", {}, "What each agent said"),
      srearena.table(more.runs.length + " runs", [{ title: "Run", name: true }, { title: "Ended" }, { title: "Score", number: true }, { title: "Blamed", name: true }], rows, { id: "said" }),
      srearena.pager(page, Math.ceil(more.runs.length / PAGE), (to) => srearena.go(["incident", incident.name], { page: to || "" }))] };
  };
})();
