// Pages of an agent and of a run: the answer beside the ground truth, and the trajectory.
"use strict";
(function () {
  const { make, number, link } = srearena;

  srearena.pages.agent = async function (route) {
    const { index } = srearena;
    const a = index.agents.findIndex((one) => one.name === route.parts[1]);
    if (a < 0) throw new Error("there is no agent " + route.parts[1]);
    const agent = index.agents[a];
    const more = await srearena.load("agents/" + a);
    const facts = [agent.kind, agent.cli, agent.model, agent.provider, agent.prompt && "prompt " + agent.prompt, agent.commit && "commit " + agent.commit];
    const rows = more.map(([i, runs, cell]) => [make("a", { href: link(["incident", index.incidents[i].name]) }, index.incidents[i].name), number(cell),
      runs.map(([run, outcome, score]) => [make("a", { href: link(["run", agent.name, index.incidents[i].name, String(run)]), title: outcome.replaceAll("_", " ") },
        "#" + run + " " + (outcome === "answered" ? number(score, 2) : outcome.replaceAll("_", " "))), " "])]);
    const test = agent.against_next;
    return { title: agent.name, content: [make("h1", {}, agent.name), make("p", { class: "soft" }, facts.filter((v) => v).join(" · ")),
      make("p", {}, "Rank " + agent.rank + ", " + index.ranking_metric + " " + number(agent.score) + ", " + agent.graded + " of " + agent.planned + " runs graded. ",
        test ? make("a", { href: link(["compare"], { a: agent.name, b: test.agent }) }, "Compare with the next") : null),
      srearena.table("Metrics over all incidents", [{ title: "Metric", name: true }, { title: "Mean", number: true }, { title: "95 % interval" }],
        Object.entries(agent.metrics).map(([m, [mean, low, high]]) => [m, number(mean), srearena.range(low, mean, high)])),
      make("h2", {}, "Incidents"),
      srearena.table("Mean and runs by incident", [{ title: "Incident", name: true }, { title: "Mean", number: true }, { title: "Runs" }], rows, { id: "incidents" })] };
  };

  function shown(step) {
    const parts = [make("p", { class: "soft" }, step.source + (step.timestamp ? " · " + step.timestamp : "") +
      (step.metrics && step.metrics.prompt_tokens ? " · " + step.metrics.prompt_tokens + " + " + (step.metrics.completion_tokens || 0) + " tokens" : ""))];
    if (step.reasoning_content) parts.push(make("h3", {}, "Thought"), make("pre", {}, step.reasoning_content));
    if (step.message) parts.push(make("pre", {}, step.message));
    for (const call of step.tool_calls || []) parts.push(make("h3", {}, "Called " + srearena.clean(call.function_name)), make("pre", {}, JSON.stringify(call.arguments, null, 1)));
    for (const result of (step.observation && step.observation.results) || []) parts.push(make("h3", {}, "Got"), make("pre", {}, typeof result.content === "string" ? result.content : JSON.stringify(result.content, null, 1)));
    return parts;
  }

  function replay(steps, route) {
    if (!steps.length) return make("p", { class: "soft" }, "No trajectory was recorded.");
    let at = Math.min(steps.length, Math.max(1, parseInt(route.query.step || "1", 10) || 1)) - 1;
    const panel = make("div", { id: "step", "aria-live": "polite" });
    const place = make("span", { id: "place" });
    const buttons = steps.map((step, i) => make("button", { type: "button", onclick: () => to(i) },
      (i + 1) + ". " + ((step.tool_calls || []).map((c) => c.function_name).join(", ") || step.source + ": " + String(step.message || "").slice(0, 60))));
    function to(i, silent) {
      if (i < 0 || i >= steps.length) return;
      buttons[at].removeAttribute("aria-current");
      at = i;
      buttons[at].setAttribute("aria-current", "step");
      if (!silent) buttons[at].scrollIntoView({ block: "nearest" });
      place.textContent = "Step " + (at + 1) + " of " + steps.length;
      panel.replaceChildren(...shown(steps[at]));
      if (!silent) history.replaceState(null, "", link(route.parts, { step: at + 1 }));
    }
    const section = make("section", { "aria-label": "Trajectory", onkeydown: (event) => {
      if (event.key === "ArrowRight" || event.key === "j") to(at + 1);
      else if (event.key === "ArrowLeft" || event.key === "k") to(at - 1);
    } }, make("div", { class: "bar" },
      make("button", { type: "button", id: "previous", onclick: () => to(at - 1) }, "Previous step"),
      make("button", { type: "button", id: "next", onclick: () => to(at + 1) }, "Next step"), place,
      make("span", { class: "soft" }, "arrow keys, or j and k")),
      make("div", { class: "steps" }, make("ol", {}, buttons.map((b) => make("li", {}, b))), panel));
    to(at, true);
    return section;
  }

  srearena.pages.run = async function (route) {
    const { index } = srearena;
    const [, name, incidentName, number_] = route.parts;
    const a = index.agents.findIndex((one) => one.name === name), i = index.incidents.findIndex((one) => one.name === incidentName);
    if (a < 0 || i < 0 || !/^[1-9][0-9]{0,5}$/.test(number_ || "")) throw new Error("there is no run " + route.parts.slice(1).join(" / "));
    const [run, incident] = await Promise.all([srearena.load("runs/" + a + "-" + i + "-" + number_), srearena.load("incidents/" + i)]);
    const others = Array.from({ length: index.runs }, (_, n) => String(n + 1));
    const right = new Set((incident.truth.gt_entities || []).map(String));
    return { title: name + " on " + incidentName, content: [
      make("h1", {}, make("a", { href: link(["agent", name]) }, name), " on ", make("a", { href: link(["incident", incidentName]) }, incidentName)),
      make("p", { class: "bar" }, "Run ", others.map((n) => make("a", { href: link(["run", name, incidentName, n]), "aria-current": n === number_ ? "page" : null }, "#" + n))),
      make("p", {}, "Ended: " + run.outcome.replaceAll("_", " ") + ["; score " + number(run.score), typeof run.seconds === "number" ? "; " + srearena.seconds(run.seconds) : "", typeof run.cost === "number" ? "; " + srearena.money(run.cost) : ""].join("") + ". "),
      run.error ? make("p", { class: "bad" }, run.error) : null,
      make("p", { id: "justification" }, run.justification),
      run.stages && run.stages.length ? srearena.table("What was asked, one after the other", [{ title: "Stage" }, { title: "Answer", name: true }, { title: "Time to it", number: true }, { title: "Verdict" }, { title: "Why" }],
        run.stages.map(([stage, given, seconds, passed, why]) => [stage, given, srearena.seconds(seconds), make("span", { class: passed ? "good" : "bad" }, passed ? "passed" : "failed"), why]), { id: "stages" }) : null,
      make("div", { class: "columns" }, srearena.graph("The truth", incident.truth.gt_graph, new Set()), srearena.graph("The answer", run.predicted_graph, right)),
      make("h2", {}, "What it said"), make("pre", { id: "answer" }, run.answer === null ? "nothing" : JSON.stringify(run.answer, null, 1)),
      make("h2", {}, "What it did"), replay(run.steps, route),
      make("h2", {}, "Scores"), srearena.table("All metrics of this run", [{ title: "Metric", name: true }, { title: "Score", number: true }],
        Object.entries(run.scores).map(([m, v]) => [m, number(v)]))] };
  };
})();
