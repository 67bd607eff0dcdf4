// Compare any number of agents: a few pair by pair in sentences, more in a table against one of them; and by incident.
import * as format from "../../format";
import { link, type Route } from "../../router";
import { index } from "../data";
import { type Child, go, heat, make, type Page, pageOf, pager, range, scale, table } from "../elements";
import { filters, kindTitle, type Query, select, type Selection } from "../selection";
import { type Compared, compared, holm, interval, known, mean } from "../statistics";

// Agents of which every pair gets a sentence: 28 of them. With more, a reader looks for one agent among the others.
const SENTENCES = 8;
const PAGE = 50;
const KEPT = ["kind", "metric", "family", "difficulty", "application"];
const NOISE = 0.05;

function names(query: Query): string[] {
  const every = index().agents.map((one) => one.name);
  if (query.all) return every;
  const known = new Set(every);
  const wanted = [...(query.agents ?? "").split(","), query.a, query.b].filter((name): name is string => Boolean(name));
  for (const name of wanted) if (!known.has(name)) throw new Error(`there is no agent ${name}`);
  return [...new Set(wanted.length > 1 ? wanted : [...wanted, ...every].slice(0, 2))];
}

interface Pair extends Compared {
  a: number;
  b: number;
}

const nameOf = (i: number): string => index().agents[i]?.name ?? "";
const verdict = (p: number): string => (p < NOISE ? "more than noise" : "within noise");

function sentences(pairs: readonly Pair[]): Child {
  const corrected = holm(pairs.map((pair) => pair.p));
  const items = pairs.map((pair, n) => {
    const p = corrected[n] ?? null;
    if (pair.difference === null || p === null) return make("li", { class: "verdict" }, `${nameOf(pair.a)} and ${nameOf(pair.b)} share no graded incident.`);
    const [low, high] = interval(pair.differences, 2000);
    const ahead = pair.difference >= 0;
    const [first, second] = ahead ? [pair.a, pair.b] : [pair.b, pair.a];
    const [from, until] = ahead ? [low, high] : [-(high ?? 0), -(low ?? 0)];
    return make("li", { class: "verdict" },
      `Over ${pair.shared.length} shared incidents ${nameOf(first)} scores ${format.fixed(Math.abs(pair.difference))} more than ${nameOf(second)} (95 % interval ${format.fixed(from)} to ${format.fixed(until)}, p = ${format.fixed(p)}): `,
      make("strong", {}, `${verdict(p)}.`));
  });
  return [make("ul", { id: "verdict" }, items), pairs.length > 1 && make("p", { class: "soft" }, `p-values are corrected for ${pairs.length} comparisons (Holm).`)];
}

// The agents by their difference from one, as rows of a table.
function against(pairs: readonly Pair[], page: number, remove: (name: string) => void): Child {
  const corrected = holm(pairs.map((pair) => pair.p));
  const rows = pairs.slice(page * PAGE, page * PAGE + PAGE).map((pair, n) => {
    const p = corrected[page * PAGE + n] ?? null;
    const name = nameOf(pair.a);
    const [low, high] = interval(pair.differences);
    return [make("a", { href: link(["agent", name]) }, name), pair.shared.length, format.fixed(pair.difference), range(low, pair.difference, high, -1), format.fixed(p),
      p === null ? "no shared graded incident" : make("span", { class: p < NOISE ? "good" : "doubt" }, verdict(p)),
      make("button", { type: "button", "aria-label": `Remove ${name}`, onclick: () => remove(name) }, "×")];
  });
  const reference = pairs[0] ? nameOf(pairs[0].b) : "";
  return table(`Each agent's score less that of ${reference}, over the incidents that both have; p-values are corrected for ${pairs.length} comparisons (Holm)`,
    [{ title: "Agent", name: true }, { title: "Shared incidents", number: true }, { title: "Difference", number: true },
      { title: "95 % interval", head: scale(["−1", "0", "1"]) }, { title: "p", number: true }, { title: "Verdict" }, { title: "Remove" }], rows, { id: "against" });
}

function byIncident({ matrix, places, metric, kind }: Selection, every: readonly number[], shown: readonly number[]): Child {
  const { incidents } = index();
  const spread = new Map(places.map((place) => {
    const values = known(every.map((i) => matrix[i]?.[place]));
    return [place, values.length ? values.reduce((a, b) => Math.max(a, b)) - values.reduce((a, b) => Math.min(a, b)) : -1] as const;
  }));
  const order = places.filter((place) => (spread.get(place) ?? -1) >= 0).sort((x, y) => (spread.get(y) ?? 0) - (spread.get(x) ?? 0));
  const rows = order.map((place) => {
    const incident = incidents[place]?.name ?? "";
    const cells = shown.map((i) => {
      const value = matrix[i]?.[place];
      return make("a", { class: `cell ${heat(value)}`, href: link(["run", nameOf(i), incident, "1"]) }, format.fixed(value, 2));
    });
    return [make("a", { href: link(["incident", incident]) }, incident), ...cells];
  });
  const columns = [{ title: "Incident", name: true }, ...shown.map((i) => ({ title: nameOf(i), number: true }))];
  return table(`${metric} by incident of ${kindTitle(kind)}, largest difference first`, columns, rows, { id: "by-incident" });
}

export async function compare({ query }: Route): Promise<Page> {
  const { agents } = index();
  const title = make("h1", {}, "Compare agents");
  if (agents.length < 2) return { title: "Compare", content: [title, make("p", { id: "empty" }, "There are fewer than two agents.")] };
  const chosen = names(query);
  const many = chosen.length > SENTENCES;
  const rest: Query = Object.fromEntries(KEPT.flatMap((key) => (query[key] ? [[key, query[key]]] : [])));
  const selected = await select(rest, true);
  const { matrix, places } = selected;
  const placeOf = new Map(agents.map((one, i) => [one.name, i]));
  const average = (i: number): number => mean(known(places.map((place) => matrix[i]?.[place]))) ?? -1;
  const at = chosen.map((name) => placeOf.get(name) ?? 0);
  const best = at.reduce((a, b) => (average(b) > average(a) ? b : a));
  const reference = chosen.includes(query.against ?? "") ? (query.against ?? "") : nameOf(best);
  const to = (list: readonly string[], more: Query = {}): void => {
    const whole = list.length === agents.length && list.length > SENTENCES;
    go(["compare"], { ...(whole ? { all: "1" } : { agents: list.join(",") }), ...rest, ...(query.against ? { against: query.against } : {}), ...more });
  };
  const less = (name: string): void => to(chosen.filter((other) => other !== name));
  const listed = new Set(chosen);
  const others = agents.filter((one) => !listed.has(one.name));
  const pair = (a: number, b: number): Pair => ({ a, b, ...compared(matrix, places, a, b, many ? chosen.length - 1 : 1) });
  const pairs = many
    ? at.filter((i) => nameOf(i) !== reference).map((i) => pair(i, placeOf.get(reference) ?? 0)).sort((x, y) => (y.difference ?? -2) - (x.difference ?? -2))
    : at.flatMap((a, n) => at.slice(n + 1).map((b) => pair(a, b)));
  const pages = many ? Math.ceil(pairs.length / PAGE) : 1;
  const page = Math.min(pageOf(query), pages - 1);
  const columns = many ? [placeOf.get(reference) ?? 0, ...pairs.slice(page * PAGE, page * PAGE + PAGE).map((one) => one.a)] : at;
  const add = make("select", { id: "compare-add", onchange: () => to([...chosen, add.value]) }, make("option", { value: "" }, "choose"),
    others.map((one) => make("option", { value: one.name }, one.name)));
  const base = make("select", { id: "compare-against", onchange: () => to(chosen, { against: base.value }) },
    chosen.map((name) => make("option", { value: name, selected: name === reference }, name)));
  return { title: "Compare", content: [title,
    make("div", { class: "bar", id: "compared" },
      many ? [`${chosen.length} agents`, make("label", { for: "compare-against" }, "against ", base)]
        : chosen.map((one) => make("button", { type: "button", "aria-label": `Remove ${one}`, disabled: chosen.length < 3, onclick: () => less(one) }, `${one} ×`)),
      others.length > 0 && make("label", { for: "compare-add" }, "add ", add),
      others.length > 0 && make("button", { type: "button", id: "compare-all", onclick: () => to(agents.map((one) => one.name)) }, `all ${agents.length}`)),
    filters({ ...rest }, (changed) => to(chosen, { ...Object.fromEntries(KEPT.map((key) => [key, ""])), ...changed }), false),
    many ? against(pairs, page, less) : sentences(pairs),
    pager(page, pages, (number) => to(chosen, { page: String(number || "") })),
    byIncident(selected, at, columns)] };
}
