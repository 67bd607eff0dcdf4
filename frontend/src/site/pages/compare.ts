// Compare any number of agents: every pair on the incidents that both have, and one table of all.
import * as format from "../../format";
import { link, type Route } from "../../router";
import { index } from "../data";
import { go, heat, make, type Page, table } from "../elements";
import { filters, kindTitle, type Query, select } from "../selection";
import { compared, holm, interval, known } from "../statistics";

const MOST = 8;
const KEPT = ["kind", "metric", "family", "difficulty", "application"];

function names(query: Query): string[] {
  const { agents } = index();
  const wanted = [...(query.agents ?? "").split(","), query.a, query.b].filter((name): name is string => Boolean(name));
  for (const name of wanted) if (!agents.some((one) => one.name === name)) throw new Error(`there is no agent ${name}`);
  return [...new Set(wanted.length > 1 ? wanted : [...wanted, ...agents.map((one) => one.name)].slice(0, 2))].slice(0, MOST);
}

export async function compare({ query }: Route): Promise<Page> {
  const { agents, incidents } = index();
  const title = make("h1", {}, "Compare agents");
  if (agents.length < 2) return { title: "Compare", content: [title, make("p", { id: "empty" }, "There are fewer than two agents.")] };
  const chosen = names(query);
  const rest: Query = Object.fromEntries(KEPT.flatMap((key) => (query[key] ? [[key, query[key]]] : [])));
  const to = (list: readonly string[], more: Query = {}): void => go(["compare"], { agents: list.join(","), ...rest, ...more });
  const { matrix, places, metric, kind } = await select(rest, true);
  const at = chosen.map((name) => agents.findIndex((one) => one.name === name));
  const pairs = at.flatMap((a, n) => at.slice(n + 1).map((b) => ({ a, b, ...compared(matrix, places, a, b) })));
  const corrected = holm(pairs.map((pair) => pair.p));
  const nameOf = (i: number): string => agents[i]?.name ?? "";
  const add = make("select", { id: "compare-add", onchange: () => to([...chosen, add.value]) }, make("option", { value: "" }, "choose"),
    agents.filter((one) => !chosen.includes(one.name)).map((one) => make("option", { value: one.name }, one.name)));
  const verdicts = pairs.map((pair, n) => {
    const p = corrected[n] ?? null;
    if (pair.difference === null || p === null) return make("li", { class: "verdict" }, `${nameOf(pair.a)} and ${nameOf(pair.b)} share no graded incident.`);
    const [low, high] = interval(pair.differences, 2000);
    const ahead = pair.difference >= 0;
    const [first, second] = ahead ? [pair.a, pair.b] : [pair.b, pair.a];
    const [from, until] = ahead ? [low, high] : [-(high ?? 0), -(low ?? 0)];
    return make("li", { class: "verdict" },
      `Over ${pair.shared.length} shared incidents ${nameOf(first)} scores ${format.fixed(Math.abs(pair.difference))} more than ${nameOf(second)} (95 % interval ${format.fixed(from)} to ${format.fixed(until)}, p = ${format.fixed(p)}): `,
      make("strong", {}, p < 0.05 ? "more than noise." : "within noise."));
  });
  const spread = (place: number): number => {
    const values = known(at.map((i) => matrix[i]?.[place]));
    return Math.max(...values) - Math.min(...values);
  };
  const shared = places.filter((place) => at.some((i) => typeof matrix[i]?.[place] === "number"));
  const rows = shared.sort((x, y) => spread(y) - spread(x)).map((place) => {
    const incident = incidents[place]?.name ?? "";
    const cells = at.map((i) => {
      const value = matrix[i]?.[place];
      return make("a", { class: `cell ${heat(value)}`, href: link(["run", nameOf(i), incident, "1"]) }, format.fixed(value, 2));
    });
    return [make("a", { href: link(["incident", incident]) }, incident), ...cells];
  });
  const columns = [{ title: "Incident", name: true }, ...chosen.map((one) => ({ title: one, number: true }))];
  return { title: "Compare", content: [title,
    make("div", { class: "bar", id: "compared" },
      chosen.map((one) => make("button", { type: "button", "aria-label": `Remove ${one}`, disabled: chosen.length < 3, onclick: () => to(chosen.filter((other) => other !== one)) }, `${one} ×`)),
      chosen.length < MOST && make("label", { for: "compare-add" }, "add ", add)),
    filters({ ...rest }, (changed) => to(chosen, { ...Object.fromEntries(KEPT.map((key) => [key, ""])), ...changed }), false),
    make("ul", { id: "verdict" }, verdicts),
    pairs.length > 1 && make("p", { class: "soft" }, `p-values are corrected for ${pairs.length} comparisons (Holm).`),
    table(`${metric} by incident of ${kindTitle(kind)}, largest difference first`, columns, rows)] };
}
