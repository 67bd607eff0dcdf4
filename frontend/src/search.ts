// Search in a transcript, and the comparison of two.
import type { Step } from "./types";

export function stepText(step: Step): string {
  return [step.title, step.thought, step.command, step.answer].filter(Boolean).join("\n");
}

// The indexes of the steps in which a query occurs, without regard to case.
export function found(steps: readonly Step[], query: string): number[] {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return [];
  return steps.flatMap((step, index) => (stepText(step).toLowerCase().includes(wanted) ? [index] : []));
}

// The next index after `from` in a sorted list, or the first; with `back`, the one before, or the last.
export function nextIndex(indexes: number[], from: number, back = false): number | undefined {
  if (back) return indexes.findLast((index) => index < from) ?? indexes.at(-1);
  return indexes.find((index) => index > from) ?? indexes[0];
}

const ACTS = new Set(["action", "tool", "command", "submission"]);

export function acts(steps: Step[]): Step[] {
  return steps.filter((step) => ACTS.has(step.kind));
}

// The index of the first act in which two transcripts differ; undefined where one is the beginning of the other.
export function divergence(a: Step[], b: Step[]): number | undefined {
  const [first, second] = [acts(a), acts(b)];
  for (let index = 0; index < Math.min(first.length, second.length); index++) {
    if ((first[index]?.command ?? "") !== (second[index]?.command ?? "")) return index;
  }
  return undefined;
}
