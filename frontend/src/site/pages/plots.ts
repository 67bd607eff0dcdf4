// Plots of score against cost and against time, with the Pareto front.
import * as format from "../../format";
import { link, type Route } from "../../router";
import { draw, go, make, type Page, table } from "../elements";
import { type Figures, filters, type Query, type Row, select } from "../selection";

const W = 640;
const H = 380;
const LEFT = 52;
const BOTTOM = 40;

interface Point {
  row: Row;
  x: number;
  y: number;
}

// The Pareto front: no other agent is at least as good for less.
function paretoFront(points: readonly Point[]): Point[] {
  const best: Point[] = [];
  for (const point of [...points].sort((a, b) => a.x - b.x || b.y - a.y)) {
    const last = best.at(-1);
    if (!last || point.y > last.y) best.push(point);
  }
  return best;
}

function plot(id: string, title: string, unit: string, rows: readonly Row[], value: (figures: Figures) => number | null, shown: (value: number) => string): HTMLElement {
  const points = rows.flatMap((row) => {
    const x = value(row.figures);
    return typeof x === "number" && row.mean !== null ? [{ row, x, y: row.mean }] : [];
  });
  if (!points.length) return make("section", {}, make("h2", {}, title), make("p", { class: "soft" }, "No agent tells this."));
  const most = Math.max(...points.map((point) => point.x)) || 1;
  const x = (at: number): number => LEFT + (at / most) * (W - LEFT - 40);
  const y = (at: number): number => H - BOTTOM - at * (H - BOTTOM - 20);
  const best = paretoFront(points);
  const words = (point: Point): string => `${point.row.agent.name}: ${format.fixed(point.y)}, ${shown(point.x)}`;
  const svg = draw("svg", { viewBox: `0 0 ${W} ${H}`, id, role: "group", "aria-label": title },
    draw("path", { class: "axis", d: `M${LEFT} 20V${H - BOTTOM}H${W - 20}`, fill: "none" }),
    [0, 0.25, 0.5, 0.75, 1].map((tick) => draw("text", { x: 10, y: y(tick) + 4 }, tick.toFixed(2))),
    [0, 0.5, 1].map((tick) => draw("text", { x: x(most * tick), y: H - BOTTOM + 18, "text-anchor": "middle" }, shown(most * tick))),
    draw("text", { x: W / 2 - 40, y: H - 6 }, unit),
    draw("polyline", { class: "pareto", points: best.map((point) => `${x(point.x)},${y(point.y)}`).join(" ") }),
    points.map((point) => draw("a", { href: link(["agent", point.row.agent.name]), "aria-label": words(point) },
      draw("circle", { class: "point", cx: x(point.x), cy: y(point.y), r: best.includes(point) ? 6 : 4 }, draw("title", {}, words(point))))),
    points.length <= 30 && points.map((point) => draw("text", { x: x(point.x), y: y(point.y) - 9, "text-anchor": x(point.x) > W / 2 ? "end" : "start" }, point.row.agent.name.slice(0, 24))));
  const columns = [{ title: "Agent", name: true }, { title: "Score", number: true }, { title: unit, number: true }];
  return make("section", {}, make("h2", {}, title), svg,
    table(`${title}, Pareto front: no agent scores as much for less`, columns,
      best.map((point) => [make("a", { href: link(["agent", point.row.agent.name]) }, point.row.agent.name), format.fixed(point.y), shown(point.x)])));
}

export async function plots({ query }: Route): Promise<Page> {
  const chosen = await select(query);
  return { title: "Cost and time", content: [make("h1", {}, "What a score costs"), filters(query, (changed: Query) => go(["plots"], changed)),
    make("div", { class: "columns" },
      plot("plot-cost", "Score against cost", "USD per run", chosen.rows, (figures) => figures.mean_cost, format.money),
      plot("plot-time", "Score against time", "time per run", chosen.rows, (figures) => figures.seconds, format.seconds))] };
}
