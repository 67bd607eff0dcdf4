// What this is and how it scores, in three sentences and a picture, above the unfiltered ranking.
import * as format from "../format";
import { link } from "../router";
import { index } from "./data";
import { draw, make } from "./elements";
import { kindTitle, type Query, type Row, type Selection } from "./selection";
import { interval } from "./statistics";

const W = 640;
const ROW = 26;
const LEFT = 190;
const MOST = 8;
const TICKS = [0, 0.25, 0.5, 0.75, 1];

function picture(rows: readonly Row[], metric: string): Element {
  const height = rows.length * ROW + 34;
  const x = (value: number): number => LEFT + value * (W - LEFT - 50);
  return draw("svg", { viewBox: `0 0 ${W} ${height}`, id: "front-picture", role: "group", "aria-label": `${metric} of the first agents, with 95 % intervals` },
    TICKS.map((tick) => [draw("path", { class: "grid", d: `M${x(tick)} 8V${height - 26}` }), draw("text", { x: x(tick), y: height - 8, "text-anchor": "middle" }, String(tick))]),
    rows.map((row, n) => {
      const y = 22 + n * ROW;
      const [low, high] = row.values ? interval(row.values) : [row.low, row.high];
      return draw("a", { href: link(["agent", row.agent.name]) },
        draw("text", { x: LEFT - 12, y: y + 4, "text-anchor": "end" }, row.agent.name.slice(0, 26)),
        typeof low === "number" && typeof high === "number" && draw("path", { class: "whisker", d: `M${x(low)} ${y}H${x(high)}` }),
        draw("circle", { class: "point", cx: x(row.mean ?? 0), cy: y, r: 5 }), draw("text", { x: W - 40, y: y + 4 }, format.fixed(row.mean, 2)));
    }));
}

export function front(chosen: Selection, query: Query): HTMLElement {
  const filtered = Object.entries(query).some(([key, value]) => value && key !== "kind");
  const rows = chosen.rows.filter((row) => row.mean !== null).slice(0, MOST);
  if (filtered || !rows.length) return make("h1", {}, "SREArena leaderboard");
  const scored = chosen.kind === "live"
    ? "On live problems they say whether anything is wrong and where, and repair it; the score is the share of stages that hold."
    : "On recorded incidents they name the root causes and how the failure spread; the score compares that with the ground truth.";
  return make("section", { class: "front", id: "front" },
    make("div", {}, make("h1", {}, "Who finds out what broke?"),
      make("p", {}, `AI agents for site reliability engineering are put in front of incidents on Kubernetes: a fault is injected into a running application, and its metrics, logs, traces and objects are all there is to go by. ${scored} Every number is a mean over incidents with its 95 % interval, and an agent is ahead of another only where a paired test says so.`),
      make("p", { class: "soft" }, `${chosen.places.length} ${kindTitle(chosen.kind)} · ${index().agents.length} agents · `, make("a", { href: "#/method" }, "how it is measured"))),
    picture(rows, chosen.metric));
}
