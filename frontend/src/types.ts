// The documents of the JSON API (srearena/view/trials.py, srearena/view/transcript.py).
import type { Call, Mark, Service } from "./incident-types";

export interface Row {
  id: string;
  source: "run" | "leaderboard" | "inspect";
  run: string;
  problem: string;
  agent: string;
  outcome: string;
  trial: number;
  model: string;
  family: string;
  application: string;
  reason: string;
  stages: [string, boolean | null][];
  score: number | null;
  steps: number | null;
  tokens: number | null;
  cost: number | null;
  seconds: number | null;
  at: string;
  session: string;
}

export interface Step {
  kind: string;
  title: string;
  stage: string;
  at?: string;
  clock?: number;
  command?: string;
  answer?: string;
  thought?: string;
  seconds?: number;
  tokens_in?: number;
  tokens_out?: number;
  cost?: number;
  failed?: boolean;
}

export interface Verdict {
  passed: boolean;
  score?: number;
  reasons?: string[];
  details?: Record<string, unknown>;
}

export interface StageResult {
  stage: string;
  submitted: boolean;
  submission: unknown;
  wall_seconds?: number;
  steps?: number;
  recovery?: { seconds: number; seen_in: string } | null;
  verdict: Verdict | null;
}

export interface GroundTruth {
  roots?: string[];
  aliases?: string[][];
  // Which failure led to which, by the names of objects.
  propagation?: [string, string][];
  explanation?: string;
  system_level?: string;
  fault_type?: string;
}

export interface Result {
  stages?: StageResult[];
  collateral?: { class: string; change: string }[];
  usage?: Record<string, number>;
  limits?: Record<string, number | null>;
  ground_truth?: GroundTruth;
  isolation?: string;
  seed?: number;
  answer?: unknown;
  scores?: Record<string, number | null>;
  logs?: Record<string, string>;
}

export interface TrialDocument {
  row: Row;
  result: Result;
  steps: Step[];
  system?: System;
  world?: { possible: boolean; reason: string };
}

// What the system of a finished trial looked like (srearena/view/incidents/finished.py).
export interface System {
  step: number;
  times: number[];
  baseline: [number, number] | null;
  marks: Mark[];
  start: { services: Service[]; edges: Call[] };
  end: { services: Service[]; edges: Call[] };
  alerts: { name: string; severity: string; labels: Record<string, string>; first: number; last: number }[];
}

export interface TrialList {
  folders: string[];
  trials: Row[];
}

export const RUNNING = "running";
