// The list of trials: filters, groups and totals.
import type { Row } from "./types";

export const GROUPS = ["agent", "model", "family", "problem", "run"] as const;
export type Grouping = (typeof GROUPS)[number];

export interface Filter {
  q: string;
  agent: string;
  model: string;
  family: string;
  outcome: string;
}

export const FILTERS = ["agent", "model", "family", "outcome"] as const;

export function filtered(rows: Row[], filter: Filter): Row[] {
  const words = filter.q.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    if (FILTERS.some((key) => filter[key] && row[key] !== filter[key])) return false;
    const text = [row.problem, row.run, row.agent, row.model, row.family, row.application, row.outcome, row.reason]
      .join(" ")
      .toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export interface Group {
  name: string;
  rows: Row[];
  passed: number;
  graded: number;
}

const UNGRADED = new Set(["running", "interrupted", "environment error", "environment_error"]);

export function isPassed(row: Row): boolean {
  if (row.outcome === "pass") return true;
  return row.source === "leaderboard" && row.outcome === "answered" && row.score === 1;
}

export function grouped(rows: Row[], by: Grouping | ""): Group[] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const name = by ? row[by] || "(none)" : "";
    const known = groups.get(name);
    if (known) known.push(row);
    else groups.set(name, [row]);
  }
  return [...groups]
    .map(([name, members]) => ({
      name,
      rows: members,
      passed: members.filter(isPassed).length,
      graded: members.filter((row) => !UNGRADED.has(row.outcome)).length,
    }))
    .sort((a, b) => a.name.localeCompare(b.name));
}

export function choices(rows: Row[], key: (typeof FILTERS)[number]): string[] {
  return [...new Set(rows.map((row) => row[key]).filter(Boolean))].sort();
}
