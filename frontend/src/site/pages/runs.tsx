// Pages of an agent and of a run: the answer beside the ground truth, the verdicts, and the transcript as the view shows it.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { CauseGraph } from "../../components/CauseGraph";
import { Block } from "../../components/Text";
import { stepIn, Transcript } from "../../components/Transcript";
import { Verdicts } from "../../components/Verdicts";
import * as format from "../../format";
import { link, type Route } from "../../router";
import { clean } from "../../text";
import type { Step } from "../../types";
import { type AgentRuns, type IncidentDetails, index, load, type RunDetails } from "../data";
import { make, mount, type Page, range, table } from "../elements";

export async function agent(route: Route): Promise<Page> {
  const { agents, incidents, ranking_metric } = index();
  const a = agents.findIndex((one) => one.name === route.parts[1]);
  const found = agents[a];
  if (!found) throw new Error(`there is no agent ${route.parts[1] ?? ""}`);
  const more = await load<AgentRuns>(`agents/${a}`);
  const facts = [found.kind, found.cli, found.model, found.provider, found.prompt && `prompt ${found.prompt}`, found.commit && `commit ${found.commit}`];
  const rows = more.map(([i, runs, average]) => {
    const name = incidents[i]?.name ?? "";
    return [make("a", { href: link(["incident", name]) }, name), format.fixed(average),
      runs.map(([run, outcome, score]) => {
        const words = outcome.replaceAll("_", " ");
        return [make("a", { href: link(["run", found.name, name, String(run)]), title: words }, `#${run} ${outcome === "answered" ? format.fixed(score, 2) : words}`), " "];
      })];
  });
  const test = found.against_next;
  return { title: found.name, content: [make("h1", {}, found.name), make("p", { class: "soft" }, facts.filter(Boolean).join(" · ")),
    make("p", {}, `Rank ${found.rank}, ${ranking_metric} ${format.fixed(found.score)}, ${found.graded} of ${found.planned} runs graded. `,
      test && make("a", { href: link(["compare"], { a: found.name, b: test.agent }) }, "Compare with the next")),
    table("Metrics over all incidents", [{ title: "Metric", name: true }, { title: "Mean", number: true }, { title: "95 % interval" }],
      Object.entries(found.metrics).map(([metric, [average, low, high]]) => [metric, format.fixed(average), range(low, average, high)])),
    make("h2", {}, "Incidents"),
    table("Mean and runs by incident", [{ title: "Incident", name: true }, { title: "Mean", number: true }, { title: "Runs" }], rows, { id: "incidents" })] };
}

function RunTranscript({ steps, route }: { steps: readonly Step[]; route: Route }): JSX.Element {
  const [current, setCurrent] = useState(() => stepIn(route, steps));
  return <Transcript steps={steps} route={route} current={current} onCurrent={setCurrent} />;
}

export async function run(route: Route): Promise<Page> {
  const { agents, incidents, runs } = index();
  const [, name = "", incidentName = "", number = ""] = route.parts;
  const a = agents.findIndex((one) => one.name === name);
  const i = incidents.findIndex((one) => one.name === incidentName);
  if (a < 0 || i < 0 || !/^[1-9][0-9]{0,5}$/.test(number)) throw new Error(`there is no run ${route.parts.slice(1).join(" / ")}`);
  const [found, incident] = await Promise.all([load<RunDetails>(`runs/${a}-${i}-${number}`), load<IncidentDetails>(`incidents/${i}`)]);
  const others = Array.from({ length: runs }, (_, n) => String(n + 1));
  const right = new Set((incident.truth.gt_entities ?? []).map(clean));
  const ended = [`Ended: ${found.outcome.replaceAll("_", " ")}`, `score ${format.fixed(found.score)}`,
    typeof found.seconds === "number" ? format.seconds(found.seconds) : "", typeof found.cost === "number" ? format.money(found.cost) : ""];
  return { title: `${name} on ${incidentName}`, content: [
    make("h1", {}, make("a", { href: link(["agent", name]) }, name), " on ", make("a", { href: link(["incident", incidentName]) }, incidentName)),
    make("p", { class: "bar" }, "Run ", others.map((one) => make("a", { href: link(["run", name, incidentName, one]), "aria-current": one === number ? "page" : null }, `#${one}`))),
    make("p", {}, `${ended.filter(Boolean).join("; ")}. `),
    found.error && make("p", { class: "bad" }, clean(found.error)),
    make("p", { id: "justification" }, clean(found.justification)),
    mount(<Verdicts result={{ stages: found.stages }} />),
    make("div", { class: "columns" }, mount(<CauseGraph title="The truth" graph={incident.truth.gt_graph} />), mount(<CauseGraph title="The answer" graph={found.predicted_graph} right={right} />)),
    make("h2", {}, "Answer"),
    make("div", { id: "answer" }, mount(<Block text={found.answer === null ? "nothing" : JSON.stringify(found.answer, null, 1)} label="Answer" />)),
    mount(<RunTranscript steps={found.steps} route={route} />),
    make("h2", {}, "Scores"),
    table("All metrics of this run", [{ title: "Metric", name: true }, { title: "Score", number: true }], Object.entries(found.scores).map(([metric, value]) => [metric, format.fixed(value)]))] };
}
