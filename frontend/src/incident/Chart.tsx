// A chart over time: uPlot on a canvas, with the value at the cursor as text and marks as vertical lines.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import * as format from "../format";
import type { Mark } from "../incident-types";
import { clean } from "../text";

export interface Line {
  label: string;
  values: (number | null)[];
}

interface ChartProps {
  title: string;
  times: number[];
  lines: Line[];
  show: (value: number | null) => string;
  marks?: readonly Mark[];
  // The value that the title names, where it is not the last one.
  now?: number | null | undefined;
  usual?: number | null | undefined;
  baseline?: [number, number] | null;
  level?: number;
  height?: number;
}

const COLOURS = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6", "--series-7", "--series-8"];

const DASHES = [[], [8, 4], [2, 3]];

export const seriesColour = (index: number): string => COLOURS[index % COLOURS.length] ?? "--series-1";
// Solid, dashed, dotted: lines of one colour differ in their dashes.
const dashes = (index: number): number[] => DASHES[Math.floor(index / COLOURS.length)] ?? [];
// More lines than that cannot be told apart: further ones are in a table only.
export const MOST_LINES = COLOURS.length * DASHES.length;

// A piece of the line, for a legend.
export function Swatch({ index }: { index: number }): JSX.Element {
  const line = { stroke: `var(${seriesColour(index)})`, "stroke-dasharray": dashes(index).join(" ") };
  return <svg class="swatch" aria-hidden="true" width="24" height="10">{index < MOST_LINES && <path d="M0 5H24" stroke-width="2.5" {...line} />}</svg>;
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";
}

// Changes whenever the colours of the page change.
function useTheme(): string {
  const current = (): string => colour("--paper");
  const [theme, setTheme] = useState(current);
  useEffect(() => {
    const update = (): void => setTheme(current());
    const observer = new MutationObserver(update);
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const media = matchMedia("(prefers-color-scheme: dark)");
    media.addEventListener("change", update);
    return () => {
      observer.disconnect();
      media.removeEventListener("change", update);
    };
  }, []);
  return theme;
}

interface Drawn {
  marks: readonly Mark[];
  usual: number | null | undefined;
  baseline: [number, number] | null | undefined;
}

function drawUnder(plot: uPlot, drawn: Drawn): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  if (drawn.baseline) {
    const left = plot.valToPos(drawn.baseline[0], "x", true);
    const right = plot.valToPos(drawn.baseline[1], "x", true);
    ctx.fillStyle = colour("--band");
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
  }
  if (typeof drawn.usual === "number") {
    const y = plot.valToPos(drawn.usual, "y", true);
    ctx.strokeStyle = colour("--soft");
    ctx.setLineDash([3 * ratio, 4 * ratio]);
    ctx.lineWidth = ratio;
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
  for (const mark of drawn.marks) {
    const x = plot.valToPos(mark.at, "x", true);
    const strong = mark.kind === "fault" || mark.kind === "current";
    ctx.strokeStyle = colour(mark.kind === "fault" ? "--bad" : mark.kind === "phase" ? "--soft" : "--accent");
    ctx.setLineDash(strong ? [] : [2 * ratio, 3 * ratio]);
    ctx.lineWidth = (strong ? 2 : 1) * ratio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

export function Chart({ title, times, lines, show, marks = [], now, usual, baseline, level = 0, height = 120 }: ChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const drawn = useRef<Drawn>({ marks, usual, baseline });
  drawn.current = { marks, usual, baseline };
  const latest = useRef({ times, lines, show });
  latest.current = { times, lines, show };
  const [hover, setHover] = useState<number | null>(null);
  const theme = useTheme();
  const shape = lines.map((line) => line.label).join("\n");

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const data = (): uPlot.AlignedData => [latest.current.times, ...latest.current.lines.map((line) => line.values)];
    const options: uPlot.Options = {
      width: Math.max(120, element.clientWidth),
      height,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: "incident" }, drag: { x: false, y: false }, points: { size: 6 }, y: false },
      scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high ?? 0) > 0 ? high * 1.12 : 1] } },
      axes: [
        { ...axis, size: 24, space: 70, values: (_, splits) => splits.map((at) => format.time(at).slice(0, 5)) },
        { ...axis, size: 52, space: 28, values: (_, splits) => splits.map((value) => latest.current.show(value)) },
      ],
      series: [
        {},
        ...latest.current.lines.map((line, index) => ({
          label: line.label,
          stroke: colour(seriesColour(index)),
          width: 1.5,
          dash: dashes(index),
          points: { show: false },
          spanGaps: false,
        })),
      ],
      hooks: {
        drawClear: [(own) => drawUnder(own, drawn.current)],
        setCursor: [(own) => setHover(own.cursor.idx ?? null)],
      },
    };
    const own = new uPlot(options, data(), element);
    plot.current = own;
    const observer = new ResizeObserver(([entry]) => entry && own.setSize({ width: Math.max(120, entry.contentRect.width), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      own.destroy();
      plot.current = undefined;
    };
  }, [shape, theme, height]);
  useEffect(() => {
    plot.current?.setData([times, ...lines.map((line) => line.values)]);
  }, [times, lines]);

  const last = now !== undefined ? now : (lines[0]?.values.findLast((value) => value !== null) ?? null);
  const single = lines.length === 1;
  const at = hover !== null && hover < times.length ? hover : null;
  const shown = at === null ? last : (lines[0]?.values[at] ?? null);
  return (
    <figure class={`chart level-${level}`}>
      <figcaption>
        <span class="chart-title">{title}</span>
        {single && <span class="chart-value">{show(shown)}</span>}
        <span class="soft">
          {at !== null ? format.time(times[at] ?? 0) : single && typeof usual === "number" ? `usually ${show(usual)}` : ""}
        </span>
      </figcaption>
      <div ref={box} role="img" aria-label={`${clean(title)}: now ${show(last)}${typeof usual === "number" ? `, usually ${show(usual)}` : ""}`} />
    </figure>
  );
}
