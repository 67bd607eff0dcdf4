// The service graph: services and stores, and the calls between them with requests, errors and latency.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import * as format from "../format";
import type { Call, Service } from "../incident-types";
import { clean } from "../text";
import { curve, edgeKey, LONGEST_NAME, NODE_HEIGHT, place } from "./layout";

export const LEVELS = ["as usual", "deviates", "deviates strongly"];
const NARROW = 620;
const SMALLEST_SCALE = 0.7;

export type Marked = ReadonlyMap<string, string>;

interface GraphProps {
  services: Service[];
  calls: Call[];
  selected: string;
  // Words that stand at services: which one was at fault, which one the agent named.
  marked?: Marked | undefined;
  onSelect: (name: string) => void;
}

function cut(name: string): string {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
}

export function callText(call: Call): string {
  const parts = [
    `${call.sampled ? "about " : ""}${format.rate(call.requests.now)}`,
    call.errors.now === null ? "" : `${format.percent(call.errors.now)} errors`,
    call.latency.now === null ? "" : `p95 ${format.milliseconds(call.latency.now)}`,
    LEVELS[call.level] ?? "",
  ];
  return `${clean(call.from)} to ${clean(call.to)}: ${parts.filter(Boolean).join(", ")}`;
}

export function ServiceGraph({ services, calls, selected, marked, onSelect }: GraphProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [vertical, setVertical] = useState(() => innerWidth < NARROW);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => entry && setVertical(entry.contentRect.width < NARROW));
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const shape = `${services.map((one) => one.name).join("\n")}\n\n${calls.map((one) => edgeKey(one.from, one.to)).join("\n")}`;
  const placed = useMemo(() => place(services, calls, vertical), [shape, vertical]);
  const busiest = Math.max(1, ...calls.map((call) => call.requests.now ?? 0));
  const width = (call: Call): number => 1.2 + 3 * Math.sqrt((call.requests.now ?? 0) / busiest);
  return (
    <div class="graph" ref={box} tabIndex={0} role="region" aria-label="Service graph">
      <svg viewBox={`0 0 ${placed.width} ${placed.height}`} role="group"
        style={{ width: "100%", minWidth: `${Math.round(placed.width * SMALLEST_SCALE)}px`, maxWidth: `${Math.round(placed.width * 1.15)}px` }} aria-label={`${services.length} services and ${calls.length} calls`}>
        <defs>
          {[0, 1, 2].map((level) => (
            <marker id={`arrow-${level}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">
              <path class={`arrow level-${level}`} d="M0,0L8,4L0,8z" />
            </marker>
          ))}
        </defs>
        {calls.map((call) => {
          const edge = placed.edges.get(edgeKey(call.from, call.to));
          if (!edge) return null;
          const dim = selected && selected !== call.from && selected !== call.to;
          return (
            <path class={`edge level-${call.level}${dim ? " dim" : ""}${call.sampled ? " sampled" : ""}`} d={curve(edge.points)}
              style={{ strokeWidth: `${width(call).toFixed(1)}px` }} marker-end={`url(#arrow-${call.level})`} />
          );
        })}
        {services.map((service) => {
          const at = placed.nodes.get(service.name);
          if (!at) return null;
          const facts = service.requests
            ? [format.rate(service.requests.now), format.percent(service.errors?.now), format.milliseconds(service.latency?.now)]
            : [service.kind === "store" ? "data store" : service.kind];
          const word = marked?.get(service.name);
          return (
            <g class={`node ${service.kind} level-${service.level}${word ? " marked" : ""}`} transform={`translate(${at.x - placed.nodeWidth / 2},${at.y - NODE_HEIGHT / 2})`}
              role="button" tabIndex={0} aria-description={[LEVELS[service.level], word].filter(Boolean).join(", ")} aria-pressed={selected === service.name} data-service={service.name}
              onClick={() => onSelect(service.name)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" && event.key !== " ") return;
                event.preventDefault();
                onSelect(service.name);
              }}>
              {word && <rect class="ring" x="-4" y="-4" width={placed.nodeWidth + 8} height={NODE_HEIGHT + 8} rx={service.kind === "service" ? 10 : 28} />}
              <rect width={placed.nodeWidth} height={NODE_HEIGHT} rx={service.kind === "service" ? 7 : 24} />
              <circle class="light" cx="15" cy="18" r="4.5" />
              <text class="name" x="26" y="22">{cut(clean(service.name))}</text>
              <text class="facts" x="15" y="39">{facts.join("  ·  ")}</text>
              {word && <text class="word" x={placed.nodeWidth / 2} y={NODE_HEIGHT + 17}>{word}</text>}
            </g>
          );
        })}
        {calls.map((call) => {
          const edge = placed.edges.get(edgeKey(call.from, call.to));
          if (!edge || (selected && selected !== call.from && selected !== call.to)) return null;
          const failing = (call.errors.now ?? 0) >= 0.0005;
          return (
            <g class={`edge-label level-${call.level}`} transform={`translate(${edge.label.x},${edge.label.y})`}>
              <text y={failing ? -3 : 4}>
                {call.sampled ? "≈ " : ""}{format.rate(call.requests.now)}
                {call.latency.now === null ? "" : ` · ${format.milliseconds(call.latency.now)}`}
              </text>
              {failing && <text class="failing" y="11">{format.percent(call.errors.now)} errors</text>}
              <title>{callText(call)}</title>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
