// The system of a finished trial at one of its steps: it is built again from the trial's journal, then it can be looked at
// like a running one. The address names the trial and the step, so that a link builds the same system anywhere.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { send, useDocument } from "../api";
import { Waiting } from "../incident/Waiting";
import { link, type Route } from "../router";
import { clean } from "../text";
import type { TrialDocument } from "../types";
import { Incident } from "./IncidentPage";

export interface World {
  world: string;
  trial: string;
  step: number;
  state: "building" | "ready" | "failed" | "ended";
  performed: number;
  prepared: boolean;
  requests: number;
  answers: { equal: number; of: number };
  incident?: string;
  error?: string;
}

export function worldLink(trial: string, step: number): string {
  return link(["world", trial, String(step)]);
}

export function WorldPage({ route }: { route: Route }): JSX.Element {
  const [, trialId = "", number = "0", tab = ""] = route.parts;
  const step = Number.parseInt(number, 10) || 0;
  const [opened, setOpened] = useState<World>();
  const [problem, setProblem] = useState<string>();
  const [turn, setTurn] = useState(0);
  const trial = useDocument<TrialDocument>(`api/trial?id=${encodeURIComponent(trialId)}`, () => false);
  useEffect(() => {
    setOpened(undefined);
    setProblem(undefined);
    send("api/world/open", { trial: trialId, step })
      .then((world) => setOpened(world as World))
      .catch((error: unknown) => setProblem(error instanceof Error ? error.message : "the server does not answer"));
  }, [trialId, step, turn]);
  const polled = useDocument<World>(opened ? `api/world?world=${opened.world}` : "", (one) => one.state === "building", 500);
  const world = polled.value ?? opened;
  if (problem ?? trial.problem) {
    return (
      <>
        <p role="alert">{clean(problem ?? trial.problem)}</p>
        <p><a href={link(["trial", trialId])}>Open the trial</a></p>
      </>
    );
  }
  if (!world || !trial.value) return <Waiting problem={polled.problem} />;
  if (world.state === "failed" || world.state === "ended") {
    return (
      <>
        <p role="alert">{world.state === "failed" ? `The system could not be built again: ${clean(world.error)}` : "This system has been closed."}</p>
        <p class="bar">
          <button type="button" id="again" onClick={() => setTurn(turn + 1)}>Build it again</button>
          <a href={link(["trial", trialId])}>Open the trial</a>
        </p>
      </>
    );
  }
  const place = ["world", trialId, String(step)];
  const past = { ...trial.value, steps: trial.value.steps.slice(0, step) };
  if (!world.incident) return <Building world={world} trial={past} />;
  return (
    <Incident id={world.incident} tab={tab} place={place} route={route} past={past}
      head={<Head world={world} trial={trial.value} step={step} onClose={() => void send("api/world/close", { world: world.world }).then(() => (location.hash = link(["trial", trialId], { step })))} />} />
  );
}

function Building({ world, trial }: { world: World; trial: TrialDocument }): JSX.Element {
  const { performed, prepared, requests } = world;
  return (
    <>
      <h1>{clean(trial.row.problem)}</h1>
      <p role="status" id="building">
        {prepared ? `The agent's actions are repeated: ${performed} of ${requests} …` : "The system is deployed, runs for some minutes of its own time, and is broken as it was …"}
      </p>
      <progress aria-label="Progress" max={requests + 1} value={prepared ? performed + 1 : undefined} />
    </>
  );
}

function Head({ world, trial, step, onClose }: { world: World; trial: TrialDocument; step: number; onClose: () => void }): JSX.Element {
  const { equal, of } = world.answers;
  const last = trial.steps.length;
  return (
    <div class="bar" id="world">
      <span>
        <strong>{clean(trial.row.problem)}</strong>, {clean(trial.row.agent)}: {step ? `after step ${step} of ${last}` : "when the agent started"}
      </span>
      {step > 0 && <a class="button" href={worldLink(trial.row.id, step - 1)}>Before this step</a>}
      {step < last && <a class="button" href={worldLink(trial.row.id, step + 1)}>After the next step</a>}
      <a href={link(["trial", trial.row.id], { step: step || null })}>Open the trial</a>
      <button type="button" id="close-world" onClick={onClose}>Close this system</button>
      {of > 0 && (
        <span class={equal === of ? "soft" : "level-1"} id="answers">
          {equal === of ? `all ${of} answers are the recorded ones` : `${equal} of ${of} answers are the recorded ones`}
        </span>
      )}
    </div>
  );
}
