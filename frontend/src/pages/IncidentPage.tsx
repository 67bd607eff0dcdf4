// One incident: its state, and a tab for each kind of evidence.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useDocument } from "../api";
import { AgentPanel } from "../incident/AgentPanel";
import { Clock } from "../incident/Clock";
import { ClusterPanel } from "../incident/ClusterPanel";
import { LogsPanel } from "../incident/LogsPanel";
import { ObjectsPanel } from "../incident/ObjectsPanel";
import { PlayPanel } from "../incident/PlayPanel";
import { markedServices } from "../incident/SystemPanel";
import { OverviewPanel } from "../incident/Overview";
import { QueryPanel } from "../incident/QueryPanel";
import { TracesPanel } from "../incident/TracesPanel";
import { Waiting } from "../incident/Waiting";
import type { Mark, Overview } from "../incident-types";
import { useKeys } from "../keyboard";
import { link, type Route } from "../router";
import { clean } from "../text";
import { RUNNING, type TrialDocument } from "../types";

const TABS: [string, string][] = [
  ["", "Overview"],
  ["cluster", "Pods and events"],
  ["logs", "Logs"],
  ["traces", "Traces"],
  ["objects", "Objects"],
  ["metrics", "Metrics"],
];
const ACTS = ["action", "tool", "command", "submission"];

export function IncidentPage({ route }: { route: Route }): JSX.Element {
  const [, id = "", tab = ""] = route.parts;
  return <Incident id={id} tab={tab} place={["incident", id]} route={route} />;
}

interface IncidentProps {
  id: string;
  tab: string;
  // The address of the overview; tabs are beneath it.
  place: string[];
  route: Route;
  // The steps of a finished trial that led to what is shown.
  past?: TrialDocument | undefined;
  head?: ComponentChildren;
}

export function Incident({ id, tab, place, route, past, head }: IncidentProps): JSX.Element {
  const recorded = id.startsWith("recording:");
  const live = !recorded;
  const { value, problem, reload } = useDocument<Overview>(`api/incident?id=${encodeURIComponent(id)}`, () => live, 5000);
  const session = id.startsWith("episode:") ? id.slice("episode:".length) : "";
  const watched = useDocument<TrialDocument>(session ? `api/trial?session=${encodeURIComponent(session)}` : "", (one) => one.row.outcome === RUNNING).value;
  const trial = past ?? watched;
  const [truth, setTruth] = useState<TruthDocument>();
  const offset = value ? value.now - Date.now() / 1000 : 0;
  const marks = useMemo(() => [...(value?.marks ?? []), ...faultMarks(truth), ...actionMarks(trial, offset)], [value, truth, trial?.steps.length]);
  const go = (to: string, query: Record<string, string | null> = {}): void => {
    location.hash = link(to ? [...place, to] : place, query);
  };
  const onQuery = (query: Record<string, string | null>): void => go(tab, { ...route.query, ...query });
  useKeys({
    "/": () => document.getElementById(tab === "metrics" ? "expression" : "search")?.focus(),
    ...Object.fromEntries(TABS.map(([name], index) => [String(index + 1), () => go(name)])),
  });
  const play = useRef("");
  if (value?.play) play.current = value.play;
  const ended = !past && problem !== undefined && trial !== undefined && trial.row.outcome !== RUNNING;
  if (!value || ended) {
    return (
      <>
        {play.current && <PlayPanel id={play.current} />}
        <Waiting problem={ended ? undefined : problem} />
        {ended && <p>This episode has ended. <a href={link(["trial", trial.row.id])}>Open its trial</a></p>}
      </>
    );
  }
  const namespaces = [...new Set(value.services.map((service) => service.namespace).filter(Boolean))];
  const services = value.services.filter((service) => service.kind === "service").map((service) => service.name);
  const names = value.services.map((service) => service.name);
  const marked = past ? markedServices(past.result, names) : truth && markedServices({ ground_truth: truth }, names);
  const deviating = value.services.filter((service) => service.level > 0 && service.requests).length;
  const firing = value.alerts.filter((alert) => alert.state === "firing").length;
  return (
    <>
      <div class="incident-head">
        <div>
          <h1>
            {clean(value.name)} <span class={`badge ${live && !past ? "live" : ""}`}>{recorded ? "recording" : past ? "built again" : `live ${value.kind}`}</span>
          </h1>
          <p class="summary" id="summary" role="status">
            <span class={deviating ? "level-2" : "level-0"}>
              <i class="dot" aria-hidden="true" /> {deviating ? `${deviating} of ${services.length} services deviate` : `${services.length} services as usual`}
            </span>
            <span class={firing ? "level-2" : "level-0"}>
              <i class="dot" aria-hidden="true" /> {firing ? `${firing} alerts firing` : "no alerts"}
            </span>
            {problem && <span class="level-1"><i class="dot" aria-hidden="true" /> {clean(problem)}</span>}
          </p>
        </div>
        <Clock incident={value} onChange={() => reload?.()} />
      </div>
      {head}
      <nav class="tabs" aria-label="Evidence">
        {TABS.filter(([name]) => name !== "metrics" || value.queries).map(([name, label]) => (
          <a href={link(name ? [...place, name] : place)} aria-current={name === tab ? "page" : undefined}>{label}</a>
        ))}
      </nav>
      {value.truth && <Truth id={id} truth={truth} onTruth={setTruth} />}
      <div class={play.current || trial ? "with-agent" : ""}>
        <div class="evidence">
          {tab === "" && <OverviewPanel incident={value} marks={marks} marked={marked} selected={route.query.service ?? ""} onSelect={(name) => onQuery({ service: name })} />}
          {tab === "cluster" && <ClusterPanel id={id} live={live} namespaces={namespaces} />}
          {tab === "logs" && <LogsPanel id={id} live={live} namespaces={namespaces} workloads={value.services.map((service) => service.name)} query={route.query} onQuery={onQuery} />}
          {tab === "traces" && <TracesPanel id={id} live={live} services={services} query={route.query} onQuery={onQuery} />}
          {tab === "objects" && <ObjectsPanel id={id} live={live} query={route.query} onQuery={onQuery} />}
          {tab === "metrics" && <QueryPanel id={id} live={live} marks={marks} query={route.query} onQuery={onQuery} />}
        </div>
        {play.current ? <PlayPanel id={play.current} /> : trial && <AgentPanel trial={trial} />}
      </div>
      <p class="soft keys">
        <kbd>1</kbd> to <kbd>{TABS.length}</kbd> open a tab, <kbd>/</kbd> searches
      </p>
    </>
  );
}

interface TruthDocument {
  problem?: string;
  roots: string[];
  faults: string[];
  at?: number;
}

const faultMarks = (truth: TruthDocument | undefined): Mark[] => (truth?.at === undefined ? [] : [{ at: truth.at, text: "the fault", kind: "fault" }]);

// The ground truth of a recording or of an episode, which is shown to those who may know it and ask for it.
function Truth({ id, truth, onTruth }: { id: string; truth: TruthDocument | undefined; onTruth: (truth: TruthDocument) => void }): JSX.Element {
  const [wanted, setWanted] = useState(false);
  const { value, problem } = useDocument<TruthDocument>(wanted ? `api/incident/truth?id=${encodeURIComponent(id)}` : "", () => false);
  useEffect(() => {
    if (value) onTruth(value);
  }, [value]);
  if (problem) return <p role="alert">{clean(problem)}</p>;
  if (!truth) return <button type="button" id="show-truth" disabled={wanted} onClick={() => setWanted(true)}>Show what was wrong</button>;
  return (
    <div class="panel" id="truth">
      {truth.problem && <p class="mono">{clean(truth.problem)}</p>}
      {truth.faults.map((fault) => <p>{clean(fault)}</p>)}
      <p>{truth.roots.map((root) => <code>{clean(root)} </code>)}</p>
    </div>
  );
}

// When the agent acted, on the cluster's clock. Entries without it have real time, and that clock may be ahead of it.
function actionMarks(trial: TrialDocument | undefined, offset: number): Mark[] {
  return (trial?.steps ?? [])
    .filter((step) => ACTS.includes(step.kind) && step.at)
    .map((step) => ({ at: step.clock ?? Date.parse(step.at ?? "") / 1000 + Math.max(0, Math.round(offset)), text: step.title, kind: "action" as const }))
    .filter((mark) => Number.isFinite(mark.at));
}
