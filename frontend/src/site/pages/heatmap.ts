// Heat map of agents by incidents. One cell has the focus; arrow keys move it, Enter opens its runs.
import * as format from "../../format";
import { link, type Route } from "../../router";
import { index } from "../data";
import { go, heat, make, type Page, pageOf, pager } from "../elements";
import { filters, type Query, select } from "../selection";

const PAGE = 50;
const STEPS: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function short(value: number | null | undefined): string {
  if (typeof value !== "number") return "";
  return value === 0 || value === 1 ? String(value) : format.fixed(value, 1).replace(/^0/, "");
}

export async function heatmap({ query }: Route): Promise<Page> {
  const { incidents } = index();
  const to = (changed: Query): void => go(["heatmap"], changed);
  const chosen = await select(query, true);
  const rows = [...chosen.rows].sort((a, b) => (b.mean ?? -1) - (a.mean ?? -1));
  const page = pageOf(query);
  const nameOf = (place: number): string => incidents[place]?.name ?? "";
  const cells: HTMLTableCellElement[][] = [];
  const body = rows.slice(page * PAGE, page * PAGE + PAGE).map((row, y) => {
    const line = chosen.places.map((place, x) => {
      const value = chosen.matrix[row.i]?.[place];
      const where = `${row.agent.name}, ${nameOf(place)}: `;
      return make("td", { class: heat(value), role: "gridcell", tabindex: x || y ? "-1" : "0", title: where + format.fixed(value, 2),
        "aria-label": where + (short(value) || "no graded run"), "data-href": link(["run", row.agent.name, nameOf(place), "1"]) }, short(value));
    });
    cells.push(line);
    return make("tr", { role: "row" }, make("th", { scope: "row", role: "rowheader", title: row.agent.name },
      make("a", { href: link(["agent", row.agent.name]), tabindex: "-1" }, row.agent.name)), line);
  });
  const open = (event: Event): void => {
    const href = event.target instanceof HTMLElement ? event.target.dataset.href : undefined;
    if (href) location.hash = href;
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === "Enter") open(event);
    const step = STEPS[event.key];
    const cell = event.target;
    if (!step || !(cell instanceof HTMLTableCellElement)) return;
    event.preventDefault();
    const row = cell.parentElement as HTMLTableRowElement;
    const next = cells[row.rowIndex - 1 + step[0]]?.[cell.cellIndex - 1 + step[1]];
    if (!next) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };
  const table = make("table", { class: "heat", id: "heat", role: "grid", onkeydown: press, onclick: open },
    make("caption", {}, `${chosen.metric}, mean over runs; an empty cell has no graded run. Arrow keys move, Enter opens.`),
    make("thead", {}, make("tr", { role: "row" }, make("td", {}), chosen.places.map((place) => make("th", { scope: "col", role: "columnheader" },
      make("a", { href: link(["incident", nameOf(place)]), tabindex: "-1" }, nameOf(place)))))),
    make("tbody", {}, body));
  return { title: "Heat map", content: [make("h1", {}, "Agents by incidents"), filters(query, to),
    rows.length && chosen.places.length ? make("div", { class: "scroll tall" }, table) : make("p", { id: "empty" }, "There is nothing to show."),
    pager(page, Math.ceil(rows.length / PAGE), (number) => to({ ...query, page: String(number || "") }))] };
}
