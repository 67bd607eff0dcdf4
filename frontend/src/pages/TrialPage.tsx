// One trial: verdicts, the truth beside the answer, and the transcript.
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useDocument } from "../api";
import { CopyButton } from "../components/CopyButton";
import { Outcome } from "../components/Outcome";
import { Block } from "../components/Text";
import { stepIn, Transcript } from "../components/Transcript";
import { Truth, Verdicts } from "../components/Verdicts";
import * as format from "../format";
import { markedServices, SignalsAround, SystemPanel } from "../incident/SystemPanel";
import { firstService } from "../incident/Overview";
import { stepMarkdown, trialMarkdown } from "../markdown";
import { link, replaceQuery, type Route } from "../router";
import { clean } from "../text";
import { worldLink } from "./WorldPage";
import { type Row, RUNNING, type TrialDocument, type TrialList } from "../types";

export function TrialPage({ route }: { route: Route }): JSX.Element {
  const id = route.parts[1] ?? "";
  const path = `api/trial?id=${encodeURIComponent(id)}`;
  const { value, problem } = useDocument<TrialDocument>(path, (trial) => trial.row.outcome === RUNNING);
  const moved = value && value.row.id !== id ? value.row.id : "";
  useEffect(() => {
    if (moved) history.replaceState(null, "", link(["trial", moved], route.query));
  }, [moved]);
  if (!value) return <p role="status">{problem ? `Error: ${clean(problem)}` : "Loading …"}</p>;
  return <Trial trial={value} route={moved ? { ...route, parts: ["trial", moved] } : route} served />;
}

// The trial of an event log, under its own address.
export function SessionPage({ session }: { session: string }): JSX.Element {
  const { value, problem } = useDocument<TrialDocument>(`api/trial?session=${encodeURIComponent(session)}`, () => false);
  useEffect(() => {
    if (value) location.replace(link(["trial", value.row.id]));
  }, [value]);
  return <p role="status">{problem ? `Error: ${clean(problem)}` : "Loading …"}</p>;
}

interface TrialProps {
  trial: TrialDocument;
  route: Route;
  served: boolean;
}

export function Trial({ trial, route, served }: TrialProps): JSX.Element {
  const { row, result, steps } = trial;
  const [current, setCurrent] = useState(() => stepIn(route, steps));
  const live = row.outcome === RUNNING;
  const [chosen, setChosen] = useState(route.query.service ?? "");
  const service = useMemo(() => chosen || (trial.system ? serviceAtFault(trial) : ""), [chosen, trial]);
  const choose = (name: string): void => {
    setChosen(name);
    replaceQuery(route, { service: name });
  };
  const facts: [string, string][] = [
    ["Agent", clean(row.agent)],
    ["Model", clean(row.model)],
    ["Family", clean(row.family)],
    ["Application", clean(row.application)],
    ["Steps", format.count(row.steps)],
    ["Tokens", row.tokens ? format.count(row.tokens) : ""],
    ["Cost", row.cost ? format.money(row.cost) : ""],
    ["Time", format.seconds(row.seconds)],
    ["Run", clean(row.run)],
    ["Seed", result.seed === undefined ? "" : String(result.seed)],
    ["Isolation", clean(result.isolation)],
  ];
  return (
    <>
      <div class="head">
        <h1>
          {clean(row.problem) || "Trial in progress"}
          {row.trial ? ` #${row.trial}` : ""} <Outcome outcome={row.outcome} />
        </h1>
        {row.reason && <p class="reason">{clean(row.reason)}</p>}
        <dl class="figures">
          {facts
            .filter(([, value]) => value && value !== "–")
            .map(([name, value]) => (
              <div>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
        </dl>
        <div class="bar">
          <CopyButton id="copy" label="Copy as Markdown" text={() => trialMarkdown(trial)} />
          {current >= 0 && steps[current] && (
            <CopyButton id="copy-step" label={`Copy step ${current + 1}`} text={() => stepMarkdown(steps[current]!, current + 1)} />
          )}
          {served && (
            <a class="button" id="export" href={`api/export?id=${encodeURIComponent(row.id)}`}>
              Export as HTML
            </a>
          )}
          {served && <CompareWith row={row} />}
          {served && trial.world?.possible && (
            <a class="button" id="open-world" href={worldLink(row.id, current + 1)}>
              {current >= 0 ? `Open the system after step ${current + 1}` : "Open the system as the agent found it"}
            </a>
          )}
        </div>
        {served && trial.world && !trial.world.possible && !live && <p class="soft" id="no-world">{trial.world.reason}</p>}
      </div>
      <Verdicts result={result} />
      <Truth result={result} />
      {trial.system && (
        <SystemPanel system={trial.system} result={result} steps={steps} current={current} selected={service} onSelect={choose} />
      )}
      <Scores scores={result.scores} />
      <Transcript steps={steps} route={route} current={current} onCurrent={setCurrent} live={live}
        around={(step, index) =>
          trial.system && step.kind !== "stage" && <SignalsAround system={trial.system} service={service} step={step} steps={steps} index={index} />
        } />
      {Object.entries(result.logs ?? {}).map(([name, text]) => (
        <section>
          <h2>{clean(name)}</h2>
          <Block text={text} label={clean(name)} />
        </section>
      ))}
    </>
  );
}

// The service whose signals are shown first: the one at fault, or the worst.
function serviceAtFault(trial: TrialDocument): string {
  const services = trial.system?.start.services ?? [];
  const measured = services.filter((service) => service.requests);
  const marked = [...markedServices(trial.result, measured.map((one) => one.name))];
  return marked.find(([, word]) => word.startsWith("at fault"))?.[0] ?? firstService(services);
}

function Scores({ scores }: { scores: Record<string, number | null> | undefined }): JSX.Element | null {
  const entries = Object.entries(scores ?? {});
  if (!entries.length) return null;
  return (
    <section aria-labelledby="scores-head">
      <h2 id="scores-head">Scores</h2>
      <dl class="figures">
        {entries.map(([name, value]) => (
          <div>
            <dt>{clean(name)}</dt>
            <dd>{format.share(value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function CompareWith({ row }: { row: Row }): JSX.Element | null {
  const { value } = useDocument<TrialList>("api/trials", () => false);
  const others = (value?.trials ?? []).filter((other) => other.id !== row.id && row.problem && other.problem === row.problem);
  if (!others.length) return null;
  return (
    <label class="inline">
      Compare with
      <select id="compare-with" onChange={(event) => (location.hash = link(["compare", row.id, event.currentTarget.value]))}>
        <option value="">choose</option>
        {others.map((other) => (
          <option value={other.id}>
            {clean(other.agent)} #{other.trial}, {clean(other.outcome)} ({clean(other.run)})
          </option>
        ))}
      </select>
    </label>
  );
}
