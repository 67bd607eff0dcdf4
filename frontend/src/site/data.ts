// The data files of a site: scripts that pass one value each, because a page opened from a file cannot fetch.
import type { Causes } from "../components/CauseGraph";
import type { StageResult, Step } from "../types";

export interface AgentRow {
  name: string;
  rank: number;
  model: string;
  provider: string;
  kind: string;
  prompt: string;
  commit: string;
  cli: string;
  planned: number;
  graded: number;
  excluded: number;
  missing: number;
  outcomes: Record<string, number>;
  score: number | null;
  pass1: number | null;
  passk: number | null;
  passevery: number | null;
  mean_cost: number | null;
  seconds: number | null;
  metrics: Record<string, [number | null, number | null, number | null]>;
  against_next: { agent: string; difference: number; p: number; within_noise: boolean } | null;
}

export type Field = "family" | "difficulty" | "application";

export interface IncidentFacts extends Record<Field, string> {
  name: string;
  kind: string;
  title: string;
}

export interface Index {
  agents: AgentRow[];
  incidents: IncidentFacts[];
  metrics: string[];
  metric_kinds?: Record<string, string[]>;
  ranking_metric: string;
  runs: number;
  k: number;
  generated_at: string;
  version?: string;
  submitter?: string;
  downloads?: [string, string][];
}

export type Matrix = (number | null)[][];
// Of one agent and one incident: graded, all, passed; cost and of how many runs; seconds and of how many runs.
export type Totals = [number, number, number, number, number, number, number] | null;

export interface ChartedService {
  name: string;
  level: number;
  requests: (number | null)[];
  errors: (number | null)[];
  latency: (number | null)[];
}

export interface IncidentDetails {
  truth: { gt_graph?: Causes; gt_entities?: unknown[]; statements?: unknown[] };
  timeline: { time: string; source: string; entity: string; what: string }[];
  charts: { times: number[]; baseline: [number, number] | null; services: ChartedService[] } | null;
  runs: [agent: number, run: number, outcome: string, score: number | null, blamed: string[]][];
}

export interface RunDetails {
  outcome: string;
  score: number | null;
  scores: Record<string, number | null>;
  error: string | null;
  justification: string;
  seconds: number | null;
  cost: number | null;
  answer: unknown;
  stages: StageResult[];
  predicted_graph: Causes;
  steps: Step[];
}

export type AgentRuns = [incident: number, runs: [run: number, outcome: string, score: number | null][], mean: number | null][];

interface Waiting {
  promise: Promise<unknown>;
  done: (value: unknown) => void;
}

declare global {
  interface Window {
    srearena: { receive: (key: string, value: unknown) => void };
    trustedTypes?: { createPolicy: (name: string, rules: { createScriptURL: (url: string) => string }) => ScriptPolicy };
  }
}

interface ScriptPolicy {
  createScriptURL: (url: string) => string;
}

const received = new Map<string, unknown>();
const waiting = new Map<string, Waiting>();

window.srearena = {
  receive: (key, value) => {
    received.set(key, value);
    waiting.get(key)?.done(value);
  },
};

const FILE = /^data\/[a-z]+(\/[A-Za-z0-9_@^.-]+)+\.js$/;

function checked(url: string): string {
  if (!FILE.test(url) || url.includes("..")) throw new Error("not a data file");
  return url;
}

const policy: ScriptPolicy = window.trustedTypes?.createPolicy("srearena", { createScriptURL: checked }) ?? { createScriptURL: checked };

export function load<T>(key: string): Promise<T> {
  if (received.has(key)) return Promise.resolve(received.get(key) as T);
  const known = waiting.get(key);
  if (known) return known.promise as Promise<T>;
  let done: (value: unknown) => void = () => undefined;
  const promise = new Promise<unknown>((resolve, fail) => {
    done = resolve;
    const script = document.createElement("script");
    script.src = policy.createScriptURL(`data/${key}.js`);
    script.addEventListener("error", () => {
      waiting.delete(key);
      fail(new Error(`there is no ${key}`));
    });
    document.head.append(script);
  });
  waiting.set(key, { promise, done });
  return promise as Promise<T>;
}

const EMPTY: Index = { agents: [], incidents: [], metrics: [], runs: 0, k: 1, ranking_metric: "score", generated_at: "" };

// The index comes as the script after the application's.
export const index = (): Index => (received.get("index") as Index | undefined) ?? EMPTY;

// The name of a metric in the names of files.
export const slug = (metric: string): string => metric.replace(/[^A-Za-z0-9_@^.-]/g, "_");
