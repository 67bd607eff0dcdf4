// How a trial ended, as a badge; and the verdicts of its stages as marks.
import type { JSX } from "preact";
import { clean } from "../text";
import type { Row } from "../types";

const TONES: Record<string, string> = { pass: "good", fail: "bad", running: "live", answered: "plain" };

export function Outcome({ outcome }: { outcome: string }): JSX.Element {
  return <span class={`badge ${TONES[outcome] ?? "warn"}`}>{clean(outcome)}</span>;
}

export function Stages({ row }: { row: Row }): JSX.Element {
  return (
    <span class="stages">
      {row.stages.map(([name, passed]) => {
        const word = passed === null ? "no verdict" : passed ? "passed" : "failed";
        const tone = passed === null ? "" : passed ? "good" : "bad";
        return (
          <span class={`stage ${tone}`} title={`${clean(name)}: ${word}`}>
            {clean(name)} {passed === null ? "·" : passed ? "✓" : "✗"}
            <span class="hidden"> {word}</span>
          </span>
        );
      })}
    </span>
  );
}
