// The documents of incidents (srearena/view/incidents).

export interface IncidentRow {
  id: string;
  name: string;
  kind: "cluster" | "episode" | "recording" | "rebuilt";
  session?: string;
  // Of a system that was built again.
  trial?: string;
  step?: number;
}

export interface Reading {
  now: number | null;
  usual: number | null;
  level: number;
}

export interface Signals {
  requests: Reading;
  errors: Reading;
  latency: Reading;
  level: number;
}

export type Measure = "requests" | "errors" | "latency" | "cpu" | "memory";

export interface Service extends Partial<Signals> {
  name: string;
  namespace: string;
  kind: "service" | "store" | "queue" | "external";
  level: number;
  series: Partial<Record<Measure, (number | null)[]>>;
}

export interface Call extends Signals {
  from: string;
  to: string;
  sampled: boolean;
}

export interface Alert {
  name: string;
  state: string;
  severity: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  since: string;
}

export interface Mark {
  at: number;
  text: string;
  kind: "action" | "current" | "fault" | "phase";
}

export interface Overview extends IncidentRow {
  now: number;
  // A clock that stands can only be advanced.
  clock: { speed: number; usual: number; stands?: boolean } | null;
  baseline: [number, number] | null;
  step: number;
  times: number[];
  services: Service[];
  edges: Call[];
  alerts: Alert[];
  queries: boolean;
  truth?: boolean;
  play?: string;
  marks?: Mark[];
}

export interface Pod {
  namespace: string;
  name: string;
  ready: string;
  status: string;
  restarts: number;
  node: string;
  since: string;
  level: number;
}

export interface ClusterNode {
  name: string;
  status: string;
  cpu: string;
  memory: string;
  version: string;
  level: number;
}

export interface ClusterEvent {
  at: string;
  type: string;
  reason: string;
  namespace: string;
  object: string;
  message: string;
  count: number;
}

export interface ClusterState {
  nodes: ClusterNode[];
  pods: Pod[];
  events: ClusterEvent[];
}

export interface LogLine {
  at: number;
  namespace: string;
  pod: string;
  container: string;
  line: string;
}

export interface Logs {
  lines: LogLine[];
  query: string;
  limited: boolean;
}

export interface TraceRow {
  id: string;
  start: number;
  milliseconds: number;
  service: string;
  operation: string;
  spans: number;
  failed: number;
  services: string[];
}

export interface SpanRow {
  id: string;
  depth: number;
  service: string;
  operation: string;
  kind: string;
  offset: number;
  milliseconds: number;
  failed: boolean;
  message: string;
  tags: Record<string, string>;
  logs: string[];
}

export interface Trace {
  id: string;
  start: number;
  milliseconds: number;
  spans: SpanRow[];
}

export interface ObjectRow {
  kind: string;
  namespace: string;
  name: string;
}

export interface Change extends ObjectRow {
  change: string;
  fields: string;
}

export interface ObjectList {
  kinds: string[];
  since: number;
  // Whether they are compared with the system before the fault.
  healthy?: boolean;
  changes?: Change[];
  objects?: ObjectRow[];
}

export interface ObjectDocument {
  yaml: string;
  state: string;
  differences: { path: string; type: string; old?: unknown; new?: unknown }[];
}

export interface QueryResult {
  times: number[];
  series: { labels: Record<string, string>; values: (number | null)[] }[];
  left_out: number;
}
