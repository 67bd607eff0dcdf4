// One step of a transcript.
import type { ComponentChildren, JSX } from "preact";
import * as format from "../format";
import { clean } from "../text";
import type { Step } from "../types";
import { Block, Text } from "./Text";

const KINDS: Record<string, string> = {
  action: "action",
  tool: "tool",
  command: "command",
  submission: "submission",
  model: "model",
  message: "message",
  note: "note",
  end: "end",
};

function Facts({ step }: { step: Step }): JSX.Element {
  const facts = [
    // The time of the system that the charts show, where it is known.
    format.clock(step.clock === undefined ? step.at : new Date(step.clock * 1000).toISOString()),
    step.seconds === undefined ? "" : format.seconds(step.seconds),
    step.tokens_in || step.tokens_out ? `${format.count(step.tokens_in ?? 0)} + ${format.count(step.tokens_out ?? 0)} tokens` : "",
    step.cost ? format.money(step.cost) : "",
  ].filter(Boolean);
  return <span class="facts">{facts.join(" · ")}</span>;
}

interface StepProps {
  step: Step;
  number: number;
  current: boolean;
  query: string;
  onSelect: () => void;
  children?: ComponentChildren;
}

export function StepCard({ step, number, current, query, onSelect, children }: StepProps): JSX.Element {
  if (step.kind === "stage") {
    return (
      <li id={`step-${number}`} class="stage-head" aria-current={current ? "step" : undefined}>
        <h3>
          <Text text={clean(step.title)} query={query} />
        </h3>
        <Facts step={step} />
      </li>
    );
  }
  return (
    <li
      id={`step-${number}`}
      class={`step ${step.kind}${step.failed ? " failed" : ""}`}
      aria-current={current ? "step" : undefined}
      onClick={onSelect}
    >
      <div class="step-head">
        <span class="number">{number}</span>
        <span class="kind">{KINDS[step.kind] ?? "step"}</span>
        <span class="title">
          <Text text={clean(step.title)} query={query} />
        </span>
        {step.failed && <span class="badge bad">failed</span>}
        <Facts step={step} />
      </div>
      {step.thought && <Block text={step.thought} label={`Thought of step ${number}`} query={query} tone="thought" />}
      {step.command && clean(step.command) !== clean(step.title) && (
        <Block text={step.command} label={`Command of step ${number}`} query={query} tone="command" />
      )}
      {step.answer && <Block text={step.answer} label={`Answer of step ${number}`} query={query} tone="answer" />}
      {children}
    </li>
  );
}
