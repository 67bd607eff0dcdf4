// The ranking, with differences and their significance.
import * as format from "../../format";
import { link, type Route } from "../../router";
import { index } from "../data";
import { type Child, go, make, type Page, pageOf, pager, range, scale } from "../elements";
import { front } from "../front";
import { filters, kindTitle, type Query, type Row, select, type Selection } from "../selection";
import { compared, interval } from "../statistics";

const PAGE = 100;

interface RankingColumn {
  key: string;
  title: string;
  of: (row: Row) => string | number | null;
  number?: boolean;
  // Left out on narrow screens.
  wide?: boolean;
  // The title ends with the k of pass@k.
  k?: boolean;
}

const SCORE: RankingColumn = { key: "mean", title: "Score", number: true, of: (row) => row.mean };
const COLUMNS: readonly RankingColumn[] = [
  { key: "name", title: "Agent", of: (row) => row.agent.name },
  { key: "model", title: "Model", of: (row) => row.agent.model, wide: true },
  SCORE,
  { key: "pass", title: "pass@1", number: true, of: (row) => row.figures.pass1, wide: true },
  { key: "passk", title: "pass@", number: true, of: (row) => row.figures.passk, wide: true, k: true },
  { key: "passevery", title: "pass^", number: true, of: (row) => row.figures.passevery, wide: true, k: true },
  { key: "runs", title: "Runs", number: true, of: (row) => row.figures.graded },
  { key: "cost", title: "USD per run", number: true, of: (row) => row.figures.mean_cost },
  { key: "seconds", title: "Time per run", number: true, of: (row) => row.figures.seconds },
];

function ordered(rows: readonly Row[], key: string, down: boolean): Row[] {
  const column = COLUMNS.find((one) => one.key === key) ?? SCORE;
  return [...rows].sort((a, b) => {
    const x = column.of(a) ?? null;
    const y = column.of(b) ?? null;
    if (x === null || y === null) return Number(x === null) - Number(y === null); // rows without a value are last in both directions
    const order = x < y ? -1 : x > y ? 1 : a.agent.name < b.agent.name ? -1 : 1;
    return down && x !== y ? -order : order;
  });
}

// Whether an agent is better than the next in rank: of all results as the leaderboard tested it, of a selection here.
function noise(row: Row, chosen: Selection): Child {
  const test = chosen.metric === index().ranking_metric ? row.agent.against_next : null;
  if (!row.next || (chosen.whole && !test)) return "";
  const p = chosen.whole ? (test?.p ?? null) : compared(chosen.matrix, chosen.places, row.i, row.next.i).p;
  if (p === null) return "";
  const luck = chosen.whole ? test?.within_noise : p >= 0.05;
  return make("span", { class: luck ? "doubt" : "good", title: `against ${row.next.agent.name}, p = ${format.fixed(p)}` }, luck ? "within noise of the next" : "ahead of the next");
}

function runs({ agent, figures }: Row, whole: boolean): Child {
  if (!whole) return make("span", {}, `${figures.graded}/${figures.planned}`);
  const left: string[] = [];
  if (agent.excluded) left.push(`${agent.excluded} spoilt by the environment`);
  if (agent.missing) left.push(`${agent.missing} not run or judged`);
  for (const [outcome, count] of Object.entries(agent.outcomes)) {
    if (!["answered", "environment_error", "not_run"].includes(outcome)) left.push(`${count} ${outcome.replaceAll("_", " ")}`);
  }
  return make("span", { title: left.join(", ") || "all answered" }, `${agent.graded}/${agent.planned}`, left.length ? "*" : "");
}

export async function ranking(route: Route): Promise<Page> {
  const { query } = route;
  const { agents, k, runs: each } = index();
  const to = (changed: Query): void => go([], changed);
  const chosen = await select(query, false);
  const key = query.sort || SCORE.key;
  const down = (query.order || (key === SCORE.key || key.startsWith("pass") ? "down" : "up")) === "down";
  const rows = ordered(chosen.rows, key, down);
  const page = pageOf(query);
  const head = COLUMNS.map((column) =>
    make("th", { scope: "col", class: `${column.number ? "number " : ""}${column.wide ? "wide" : ""}`, "aria-sort": column.key === key ? (down ? "descending" : "ascending") : "none" },
      make("button", { type: "button", "data-sort": column.key, onclick: () => to({ ...query, sort: column.key, order: column.key === key ? (down ? "up" : "down") : "", page: "" }) },
        `${column.title}${column.k ? k : ""}`, column.key === key ? (down ? " ▾" : " ▴") : "")));
  head.splice(3, 0, make("th", { scope: "col", class: "wide" }, "95 % interval", scale()));
  const body = rows.slice(page * PAGE, page * PAGE + PAGE).map((row) => {
    const { agent, figures } = row;
    const [low, high] = row.values ? interval(row.values) : [row.low, row.high];
    return make("tr", {},
      make("td", { class: "number" }, row.mean === null ? "–" : row.rank),
      make("td", { class: "name" }, make("a", { href: link(["agent", agent.name]) }, agent.name), " ", make("div", { class: "soft" }, noise(row, chosen))),
      make("td", { class: "wide" }, agent.model),
      make("td", { class: "number" }, format.fixed(row.mean)),
      make("td", { class: "wide" }, range(low, row.mean, high)),
      make("td", { class: "number wide" }, format.fixed(figures.pass1, 2)),
      make("td", { class: "number wide" }, format.fixed(figures.passk, 2)),
      make("td", { class: "number wide" }, format.fixed(figures.passevery, 2)),
      make("td", { class: "number" }, runs(row, chosen.whole)),
      make("td", { class: "number" }, format.money(figures.mean_cost)),
      make("td", { class: "number" }, format.seconds(figures.seconds)));
  });
  const about = `${chosen.places.length} ${kindTitle(chosen.kind)}, ${rows.length} agents, ${each}${each === 1 ? " run" : " runs"} each; # is the rank by ${chosen.metric}, however the table is sorted`;
  return { title: "Ranking", content: [front(chosen, query), make("h2", {}, "Ranking"), filters(query, to),
    rows.length ? make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Ranking" },
      make("table", { id: "ranking" }, make("caption", {}, about),
        make("thead", {}, make("tr", {}, make("th", { scope: "col", class: "number" }, "#"), head)), make("tbody", {}, body)))
      : make("p", { id: "empty" }, agents.length ? "Nothing fits this selection." : "There are no results yet."),
    pager(page, Math.ceil(rows.length / PAGE), (number) => to({ ...query, page: String(number || "") }))] };
}
