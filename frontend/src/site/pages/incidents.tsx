// The list of incidents, and a page for each: charts, timeline, ground truth, and all answers.
import { CauseGraph } from "../../components/CauseGraph";
import * as format from "../../format";
import { link, type Route } from "../../router";
import { clean } from "../../text";
import { type IncidentDetails, type IncidentFacts, index, load, type Matrix, type RunDetails, slug } from "../data";
import { type Child, go, make, mount, type Page, pageOf, pager, table } from "../elements";
import { IncidentCharts } from "../IncidentCharts";
import { known, mean } from "../statistics";

const PAGE = 100;
const MOST_ANSWERS = 1000;

export async function incidents(): Promise<Page> {
  const { agents, incidents: all, ranking_metric } = index();
  const matrix = agents.length ? await load<Matrix>(`scores/${slug(ranking_metric)}`) : [];
  const rows = all.map((incident, i) => [make("a", { href: link(["incident", incident.name]) }, incident.name), incident.kind, incident.family,
    incident.difficulty, incident.application, format.fixed(mean(known(matrix.map((line) => line[i]))))]);
  const columns = [{ title: "Incident", name: true }, { title: "Kind" }, { title: "Family" }, { title: "Difficulty" }, { title: "Application" }, { title: "Mean over agents", number: true }];
  return { title: "Incidents", content: [make("h1", {}, "Incidents"), rows.length ? table(`${rows.length} incidents`, columns, rows) : make("p", { id: "empty" }, "There are no results yet.")] };
}

// The graph of one run's answer beside the ground truth; the address selects the run.
async function against({ truth, runs }: IncidentDetails, incident: IncidentFacts, i: number, route: Route): Promise<Child> {
  const { agents } = index();
  const answered = runs.filter(([, , outcome]) => outcome === "answered").slice(0, MOST_ANSWERS);
  const nameOf = ([agent, run]: IncidentDetails["runs"][number]): string => `${agents[agent]?.name ?? ""} #${run}`;
  const chosen = answered.find((one) => nameOf(one) === route.query.answer) ?? answered[0];
  if (!chosen) return make("p", { class: "soft" }, "No run gave an answer.");
  const box = make("select", { id: "answer-of", onchange: () => go(["incident", incident.name], { ...route.query, answer: box.value }) },
    answered.map((one) => make("option", { value: nameOf(one), selected: one === chosen }, nameOf(one))));
  const right = new Set((truth.gt_entities ?? []).map(clean));
  const answer = await load<RunDetails>(`runs/${chosen[0]}-${i}-${chosen[1]}`).then(
    (run) => mount(<CauseGraph title="The answer" graph={run.predicted_graph} right={right} />),
    () => make("p", { class: "soft" }, "This run was not kept with the results."));
  return [make("p", {}, make("label", { for: "answer-of" }, "The answer of ", box)),
    make("div", { class: "columns", id: "against" }, mount(<CauseGraph title="The truth" graph={truth.gt_graph} />), answer)];
}

export async function incident(route: Route): Promise<Page> {
  const { agents, incidents: all } = index();
  const i = all.findIndex((one) => one.name === route.parts[1]);
  const found = all[i];
  if (!found) throw new Error(`there is no incident ${route.parts[1] ?? ""}`);
  const more = await load<IncidentDetails>(`incidents/${i}`);
  const page = pageOf(route.query);
  const rows = more.runs.slice(page * PAGE, page * PAGE + PAGE).map(([agent, run, outcome, score, blamed]) => {
    const name = agents[agent]?.name ?? "";
    return [make("a", { href: link(["run", name, found.name, String(run)]) }, `${name} #${run}`), outcome.replaceAll("_", " "), format.fixed(score), blamed.join(", ") || "–"];
  });
  const empty = found.kind === "live" ? "This is a live problem: every run has its own timeline." : "There is no timeline.";
  return { title: found.name, content: [
    make("h1", {}, found.title || found.name),
    make("p", { class: "soft" }, [found.kind, found.family, found.difficulty, found.application].filter(Boolean).join(" · ")),
    make("details", { id: "truth", open: Boolean(route.query.answer) }, make("summary", {}, "What was true (this gives the answer away)"),
      make("ul", {}, (more.truth.statements ?? []).map((text) => make("li", {}, clean(text)))), await against(more, found, i, route)),
    more.charts?.services.length ? mount(<IncidentCharts charts={more.charts} />) : null,
    make("h2", {}, "Timeline"),
    more.timeline.length ? table("What the recording shows, first to last", [{ title: "Time (UTC)", number: true }, { title: "Source" }, { title: "Object", name: true }, { title: "What" }],
      more.timeline.map((entry) => [format.moment(clean(entry.time)), clean(entry.source), clean(entry.entity), clean(entry.what)])) : make("p", { class: "soft" }, empty),
    make("h2", {}, "What each agent said"),
    table(`${more.runs.length} runs`, [{ title: "Run", name: true }, { title: "Ended" }, { title: "Score", number: true }, { title: "Blamed", name: true }], rows, { id: "said" }),
    pager(page, Math.ceil(more.runs.length / PAGE), (to) => go(["incident", found.name], { page: to || "" }))] };
}
