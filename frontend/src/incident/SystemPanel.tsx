// The system of a finished trial: its service graph with the truth and the agent's answer, signals, and the agent's actions.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Mark, Overview } from "../incident-types";
import { clean } from "../text";
import type { Result, Step, System } from "../types";
import { blamed } from "../components/Verdicts";
import { Chart } from "./Chart";
import { CHARTS, OverviewPanel } from "./Overview";

const ACTS = ["action", "tool", "command", "submission"];
// Seconds before and after an action whose signals are shown beside it.
const AROUND = 300;
const SMALL = CHARTS.slice(0, 3);

// The services of the graph that a name of an object stands for: the service itself, or one whose pods have such names.
export function servicesOf(name: string, services: readonly string[]): string[] {
  const object = clean(name).trim().toLowerCase().split("/").at(-1) ?? "";
  const exact = services.filter((service) => service.toLowerCase() === object);
  if (exact.length) return exact;
  return services.filter((service) => object.startsWith(`${service.toLowerCase()}-`) && /^(-[a-z0-9]{1,12}){1,2}$/.test(object.slice(service.length)));
}

// Which services were at fault, and which the agent named: the changed object, or a component that stands for it.
export function markedServices(result: Result, services: readonly string[]): Map<string, string> {
  const truth = result.ground_truth;
  const roots = (truth?.roots ?? []).flatMap((root) => servicesOf(root, services));
  const wrong = roots.length ? roots : (truth?.aliases ?? []).flat().flatMap((alias) => servicesOf(alias, services));
  const named = blamed(result).flatMap((answer) => servicesOf(answer, services));
  const marked = new Map<string, string>();
  for (const service of wrong) marked.set(service, "at fault");
  for (const service of named) marked.set(service, marked.has(service) ? "at fault, named" : "named by the agent");
  return marked;
}

// The agent's actions on the system's clock.
export function actionMarks(steps: readonly Step[], current: number): Mark[] {
  return steps.flatMap((step, index) =>
    ACTS.includes(step.kind) && step.clock !== undefined
      ? [{ at: step.clock, text: `${index + 1}. ${step.title}`, kind: index === current ? ("current" as const) : ("action" as const) }]
      : [],
  );
}

interface SystemProps {
  system: System;
  result: Result;
  steps: readonly Step[];
  current: number;
  selected: string;
  onSelect: (name: string) => void;
}

export function SystemPanel({ system, result, steps, current, selected, onSelect }: SystemProps): JSX.Element {
  const [moment, setMoment] = useState<"start" | "end">("start");
  const shown = system[moment];
  const marks = useMemo(() => [...system.marks, ...actionMarks(steps, current)], [system, steps, current]);
  const marked = useMemo(() => markedServices(result, shown.services.map((service) => service.name)), [result, shown]);
  const incident = useMemo(() => overviewOf(system, moment), [system, moment]);
  return (
    <section aria-labelledby="system-head" id="system">
      <div class="bar titled">
        <h2 id="system-head">The system</h2>
        <div class="segmented" role="group" aria-label="Moment">
          <button type="button" aria-pressed={moment === "start"} onClick={() => setMoment("start")}>When the agent started</button>
          <button type="button" aria-pressed={moment === "end"} onClick={() => setMoment("end")}>At the end</button>
        </div>
      </div>
      <OverviewPanel incident={incident} marks={marks} selected={selected} marked={marked} compact onSelect={onSelect} />
      <p class="soft">In the charts: the fault in red, the agent's start and end in grey, its actions dashed.</p>
    </section>
  );
}

function overviewOf(system: System, moment: "start" | "end"): Overview {
  const { services, edges } = system[moment];
  const series = new Map(system.end.services.map((service) => [service.name, service.series]));
  return {
    id: "", name: "", kind: "episode", now: 0, clock: null, queries: false,
    baseline: system.baseline, step: system.step, times: system.times, edges,
    services: services.map((service) => ({ ...service, series: series.get(service.name) ?? service.series })),
    alerts: system.alerts.map((alert) => ({
      name: alert.name, state: "firing", severity: alert.severity, labels: alert.labels, annotations: {},
      since: new Date(alert.first * 1000).toISOString(),
    })),
  };
}

// The signals of one service around one action.
export function SignalsAround({ system, service, step, steps, index }: { system: System; service: string; step: Step; steps: readonly Step[]; index: number }): JSX.Element | null {
  const found = system.end.services.find((one) => one.name === service);
  const marks = useMemo(() => [...system.marks, ...actionMarks(steps, index)], [system, steps, index]);
  if (!found || step.clock === undefined) return null;
  const clock = step.clock;
  const first = system.times.findIndex((time) => time >= clock - AROUND);
  if (first < 0) return null;
  const last = system.times.findLastIndex((time) => time <= clock + AROUND) + 1;
  if (last - first < 3) return null;
  const usual = system.start.services.find((one) => one.name === service);
  return (
    <div class="around">
      <p class="soft">{clean(service)}, five minutes before and after this step</p>
      <div class="charts">
        {SMALL.map(([measure, title, show]) => {
          const values = found.series[measure]?.slice(first, last);
          if (!values?.some((value) => value !== null)) return null;
          const reading = measure === "requests" || measure === "errors" || measure === "latency" ? usual?.[measure] : undefined;
          return (
            <Chart key={measure} title={title} times={system.times.slice(first, last)} lines={[{ label: measure, values }]} show={show}
              marks={marks} usual={reading?.usual} height={84} />
          );
        })}
      </div>
    </div>
  );
}
