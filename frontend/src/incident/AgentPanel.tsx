// The agent's transcript beside the incident.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { StepCard } from "../components/StepCard";
import { link } from "../router";
import type { TrialDocument } from "../types";

export function AgentPanel({ trial }: { trial: TrialDocument }): JSX.Element {
  const list = useRef<HTMLOListElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    if (follows.current && list.current) list.current.scrollTop = list.current.scrollHeight;
  }, [trial.steps.length]);
  return (
    <section class="panel flush agent" aria-labelledby="agent-head">
      <div class="panel-head">
        <h2 id="agent-head">Agent</h2>
        <span class="badge live">{trial.row.outcome}</span>
        <span class="soft">{trial.steps.length} steps</span>
        <a href={link(["trial", trial.row.id])}>Open the trial</a>
      </div>
      <ol class="transcript" ref={list} tabIndex={0} aria-label="Transcript" id="transcript"
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          follows.current = scrollHeight - scrollTop - clientHeight < 40;
        }}>
        {trial.steps.map((step, index) => (
          <StepCard step={step} number={index + 1} current={false} query="" onSelect={() => undefined} />
        ))}
      </ol>
      {trial.steps.length === 0 && <p class="empty">The agent has done nothing yet.</p>}
    </section>
  );
}
