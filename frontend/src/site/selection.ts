// The filters of ranking, breakdown, heat map, plots and comparison. They are part of the address, so that a link shows
// the same selection. Recorded incidents and live problems are graded differently: a selection has one kind only.
import { type AgentRow, type Field, index, load, type Matrix, slug, type Totals } from "./data";
import { type Child, make } from "./elements";
import { known, mean } from "./statistics";

export type Query = Record<string, string>;
export type Go = (query: Query) => void;

export const FIELDS: readonly [Field, string][] = [["family", "Family"], ["difficulty", "Difficulty"], ["application", "Application"]];
const KINDS: Record<string, string> = { snapshot: "recorded incidents", live: "live problems" };
const STAGES = ["resolved", "detection", "localization", "analysis", "diagnosis", "mitigation"];

export const kindTitle = (kind: string | undefined): string => (kind && (KINDS[kind] ?? kind)) || "incidents";
export const kinds = (): string[] => [...new Set(index().incidents.map((one) => one.kind))].sort().reverse();

function kindOf(query: Query): string | undefined {
  const all = kinds();
  return query.kind !== undefined && all.includes(query.kind) ? query.kind : all[0];
}

// The metrics that incidents of a kind have.
function metricsOf(kind: string | undefined): string[] {
  return index().metrics.filter((metric) => {
    const of = index().metric_kinds?.[metric];
    return !of || (kind !== undefined && of.includes(kind));
  });
}

function metricOf(query: Query): string {
  return query.metric !== undefined && metricsOf(kindOf(query)).includes(query.metric) ? query.metric : index().ranking_metric;
}

function options(values: readonly string[], chosen: string | undefined, all: string): Child {
  const names = [...new Set(values.filter(Boolean))].sort();
  return [make("option", { value: "" }, all), names.map((one) => make("option", { value: one, selected: one === chosen }, one))];
}

function control(label: string, name: string, children: Child, go: Go, query: Query): Child {
  const box = make("select", { id: `filter-${name}`, onchange: () => go({ ...query, [name]: box.value, page: "" }) }, children);
  return make("label", { for: `filter-${name}` }, label, box);
}

function metricChoice(query: Query, go: Go): Child {
  const chosen = metricOf(query);
  const metrics = metricsOf(kindOf(query));
  const ranked = index().ranking_metric;
  const groups: [string, string[]][] = [
    ["Ranked by", [ranked]],
    ["Answers, by the judge", metrics.filter((metric) => metric !== ranked && !STAGES.includes(metric))],
    ["Stages", metrics.filter((metric) => STAGES.includes(metric))],
  ];
  const shown = groups.filter(([, each]) => each.length).map(([title, each]) =>
    make("optgroup", { label: title }, each.map((metric) => make("option", { value: metric, selected: metric === chosen }, metric))));
  return control("Metric", "metric", shown, go, query);
}

export function filters(query: Query, go: Go, agents = true): HTMLElement {
  const kind = kindOf(query);
  const incidents = index().incidents.filter((one) => one.kind === kind);
  const fields = FIELDS.filter(([name]) => new Set(incidents.map((one) => one[name])).size > 1 || query[name]);
  const search = make("input", { id: "filter-q", type: "search", value: query.q ?? "", onchange: () => go({ ...query, q: search.value, page: "" }) });
  return make("form", { class: "filters", "aria-label": "Selection", onsubmit: (event: Event) => event.preventDefault() },
    kinds().length > 1 && control("Kind", "kind", kinds().map((one) => make("option", { value: one, selected: one === kind }, kindTitle(one))), go, query),
    metricChoice(query, go),
    fields.map(([name, title]) => control(title, name, options(incidents.map((one) => one[name]), query[name], "all"), go, query)),
    agents && control("Model", "model", options(index().agents.map((agent) => agent.model), query.model, "all"), go, query),
    agents && make("label", { for: "filter-q" }, "Agent", search),
    make("button", { type: "button", onclick: () => go({}) }, "Reset"));
}

export type Figures = Pick<AgentRow, "graded" | "planned" | "pass1" | "passk" | "passevery" | "mean_cost" | "seconds">;

// The chance that k runs, drawn from n, are all among `hits`.
function chance(hits: number, n: number, k: number): number {
  let share = 1;
  for (let i = 0; i < k; i++) share *= Math.max(0, hits - i) / (n - i);
  return share;
}

// Runs of one agent over the selected incidents: how many, and what they cost.
function figures(totals: readonly Totals[], places: readonly number[], k: number): Figures {
  const sum = { graded: 0, runs: 0, cost: 0, costed: 0, seconds: 0, timed: 0 };
  const first: number[] = [];
  const some: number[] = [];
  const all: number[] = [];
  for (const place of places) {
    const found = totals[place];
    if (!found) continue;
    const [graded, runs, passed, cost, costed, seconds, timed] = found;
    sum.graded += graded;
    sum.runs += runs;
    sum.cost += cost;
    sum.costed += costed;
    sum.seconds += seconds;
    sum.timed += timed;
    if (graded) first.push(passed / graded);
    if (graded >= k) {
      some.push(1 - chance(graded - passed, graded, k));
      all.push(chance(passed, graded, k));
    }
  }
  return {
    graded: sum.graded, planned: sum.runs, pass1: mean(first), passk: mean(some), passevery: mean(all),
    mean_cost: sum.costed ? sum.cost / sum.costed : null, seconds: sum.timed ? sum.seconds / sum.timed : null,
  };
}

export interface Row {
  i: number;
  agent: AgentRow;
  mean: number | null;
  figures: Figures;
  rank: number;
  next: Row | null;
  low?: number | null;
  high?: number | null;
  // Of a selection, from which its interval is computed.
  values?: number[];
}

export interface Selection {
  metric: string;
  kind: string | undefined;
  places: number[];
  rows: Row[];
  // Whether it is everything, so that the leaderboard's own figures hold.
  whole: boolean;
  matrix: Matrix;
}

// Which incidents and agents are selected, with rank, metric and figures of each agent over the selection.
export async function select(query: Query, needsMatrix = false): Promise<Selection> {
  const { incidents, agents, k } = index();
  const metric = metricOf(query);
  const kind = kindOf(query);
  const places = incidents.flatMap((one, i) => (one.kind === kind && FIELDS.every(([name]) => !query[name] || one[name] === query[name]) ? [i] : []));
  const whole = places.length === incidents.length;
  const matrix = agents.length && (!whole || needsMatrix) ? await load<Matrix>(`scores/${slug(metric)}`) : [];
  const totals = agents.length && !whole ? await load<Totals[][]>("totals/runs") : [];
  const every = agents.map((agent, i): Row => {
    const ranks = { i, agent, rank: 0, next: null };
    if (whole) {
      const [average, low, high] = agent.metrics[metric] ?? [null, null, null];
      return { ...ranks, mean: average, low, high, figures: agent };
    }
    const values = known(places.map((place) => matrix[i]?.[place]));
    return { ...ranks, mean: mean(values), values, figures: figures(totals[i] ?? [], places, k) };
  });
  every.sort((a, b) => (b.mean ?? -1) - (a.mean ?? -1) || (a.agent.name < b.agent.name ? -1 : 1));
  every.forEach((row, n) => {
    const before = every[n - 1];
    row.rank = before && before.mean === row.mean ? before.rank : n + 1;
    row.next = every[n + 1] ?? null;
  });
  const word = (query.q ?? "").toLowerCase();
  const rows = every.filter(({ agent }) => (!query.model || agent.model === query.model) && (!word || `${agent.name} ${agent.model}`.toLowerCase().includes(word)));
  return { metric, kind, places, rows, whole, matrix };
}
