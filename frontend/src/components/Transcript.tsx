// The transcript of a trial, with search and keys. The chosen step is in the address.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useKeys } from "../keyboard";
import { replaceQuery, type Route } from "../router";
import { found, nextIndex } from "../search";
import { clean } from "../text";
import type { Step } from "../types";
import { StepCard } from "./StepCard";

// The index of the step that the address names; -1 where it names none.
export function stepIn(route: Route, steps: readonly Step[]): number {
  const number = Number.parseInt(route.query.step ?? "", 10);
  return Number.isFinite(number) ? Math.max(1, Math.min(number, steps.length)) - 1 : -1;
}

interface TranscriptProps {
  steps: readonly Step[];
  route: Route;
  current: number;
  onCurrent: (index: number) => void;
  live?: boolean;
  // What is shown within the chosen step.
  around?: (step: Step, index: number) => ComponentChildren;
}

export function Transcript({ steps, route, current, onCurrent, live = false, around }: TranscriptProps): JSX.Element {
  const [query, setQuery] = useState(route.query.q ?? "");
  const hits = useMemo(() => found(steps, query), [steps, query]);
  const stages = steps.flatMap((step, index) => (step.kind === "stage" ? [{ name: step.stage, index }] : []));
  const select = (index: number | undefined, scroll = true): void => {
    if (index === undefined || index < 0 || index >= steps.length) return;
    onCurrent(index);
    replaceQuery(route, { step: index + 1, q: query });
    if (scroll) document.getElementById(`step-${index + 1}`)?.scrollIntoView({ block: "center" });
  };
  useEffect(() => {
    if (current >= 0) document.getElementById(`step-${current + 1}`)?.scrollIntoView({ block: "center" });
  }, []);
  useKeys({
    j: () => select(current + 1),
    k: () => select(Math.max(0, current - 1)),
    n: () => select(nextIndex(hits, current)),
    p: () => select(nextIndex(hits, current, true)),
    s: () => select(nextIndex(stages.map((stage) => stage.index), current)),
    "/": () => document.getElementById("search")?.focus(),
    g: () => select(0),
    G: () => select(steps.length - 1),
  });
  return (
    <section aria-labelledby="transcript-head">
      <h2 id="transcript-head">Transcript</h2>
      <div class="bar sticky">
        <label class="inline">
          Search
          <input id="search" type="search" value={query} onInput={(event) => setQuery(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Enter" && select(nextIndex(hits, current, event.shiftKey))} />
        </label>
        <span id="hits" role="status">
          {query.trim() ? `${hits.length} of ${steps.length} steps` : `${steps.length} steps`}
        </span>
        <nav aria-label="Stages">
          {stages.map(({ name, index }) => (
            <button type="button" class="jump" onClick={() => select(index)}>
              {clean(name)}
            </button>
          ))}
        </nav>
        {live && <span class="badge live">live</span>}
      </div>
      {steps.length === 0 && <p class="soft">No steps were recorded.</p>}
      <ol class="transcript" id="transcript">
        {steps.map((step, index) => (
          <StepCard step={step} number={index + 1} current={index === current} query={hits.includes(index) ? query.trim() : ""}
            onSelect={() => select(index, false)}>
            {index === current && around?.(step, index)}
          </StepCard>
        ))}
      </ol>
      <p class="soft keys">
        <kbd>j</kbd> <kbd>k</kbd> step, <kbd>s</kbd> next stage, <kbd>/</kbd> search, <kbd>n</kbd> <kbd>p</kbd> match
      </p>
    </section>
  );
}
