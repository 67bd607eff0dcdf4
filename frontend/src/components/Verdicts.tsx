// What was graded: the stages with their reasons, and the truth beside the answers.
import type { JSX } from "preact";
import * as format from "../format";
import { clean } from "../text";
import { CauseGraph } from "./CauseGraph";
import type { GroundTruth, Result, StageResult } from "../types";

function answerText(stage: StageResult): string {
  if (!stage.submitted) return "no answer";
  return stage.submission === null || stage.submission === undefined ? "done" : clean(stage.submission);
}

export function Verdicts({ result }: { result: Result }): JSX.Element | null {
  const stages = result.stages ?? [];
  if (!stages.length) return null;
  return (
    <section aria-labelledby="verdicts-head">
      <h2 id="verdicts-head">Verdicts</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Verdicts by stage">
        <table id="verdicts">
          <thead>
            <tr>
              <th scope="col">Stage</th>
              <th scope="col">Verdict</th>
              <th scope="col">Answer</th>
              <th scope="col" class="number">Time</th>
              <th scope="col" class="number">Steps</th>
              <th scope="col">Reasons</th>
            </tr>
          </thead>
          <tbody>
            {stages.map((stage) => (
              <tr>
                <th scope="row">{clean(stage.stage)}</th>
                <td>
                  {stage.verdict ? (
                    <span class={`badge ${stage.verdict.passed ? "good" : "bad"}`}>
                      {stage.verdict.passed ? "passed" : "failed"}
                    </span>
                  ) : (
                    "–"
                  )}
                </td>
                <td class="text">{answerText(stage)}</td>
                <td class="number">
                  {stage.submitted ? format.seconds(stage.wall_seconds) : "–"}
                  {stage.recovery ? ` (recovered after ${format.seconds(stage.recovery.seconds)})` : ""}
                </td>
                <td class="number">{format.count(stage.steps)}</td>
                <td class="text">
                  {(stage.verdict?.reasons ?? []).map((reason) => (
                    <div>{clean(reason)}</div>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

// The names that an agent gave for the origin: of a localization, or of the entities of a diagnosis.
export function blamed(result: Result): string[] {
  const localization = (result.stages ?? []).find((stage) => stage.stage === "localization")?.submission;
  if (Array.isArray(localization)) return localization.map(clean);
  if (typeof localization === "string") return [clean(localization)];
  const answer = result.answer as { entities?: unknown } | null | undefined;
  if (!Array.isArray(answer?.entities)) return [];
  return answer.entities
    .filter((entity): entity is { name: unknown } => Boolean(entity?.contributing_factor))
    .map((entity) => clean(entity.name));
}

// Whether an answer names an accepted object. Answers may leave out namespace and kind.
export function names(answer: string, truth: GroundTruth): boolean {
  const accepted = [...(truth.roots ?? []), ...(truth.aliases ?? []).flat()].map((name) => name.toLowerCase());
  const given = answer.trim().toLowerCase();
  if (!given) return false;
  return accepted.some((name) => {
    const [namespace, kind, object] = name.split("/");
    return [name, object, `${kind}/${object}`, `${namespace}/${object}`].includes(given);
  });
}

export function Truth({ result }: { result: Result }): JSX.Element | null {
  const truth = result.ground_truth;
  if (!truth) return null;
  const answers = blamed(result);
  return (
    <section aria-labelledby="truth-head">
      <h2 id="truth-head">Truth and answer</h2>
      <div class="columns">
        <div class="panel" id="truth">
          <h3>What was wrong</h3>
          {truth.explanation && <p>{clean(truth.explanation)}</p>}
          <ul class="names">
            {(truth.roots ?? []).map((root) => (
              <li>
                <code>{clean(root)}</code>
              </li>
            ))}
            {!truth.roots?.length && <li>nothing</li>}
          </ul>
          <p class="soft">{[truth.system_level, truth.fault_type].filter(Boolean).map(clean).join(" · ")}</p>
        </div>
        <div class="panel" id="answer">
          <h3>What the agent named</h3>
          <ul class="names">
            {answers.map((answer) => {
              const right = names(answer, truth);
              return (
                <li class={right ? "good" : "bad"}>
                  <code>{answer}</code> {right ? "✓ an accepted origin" : "✗ not the origin"}
                </li>
              );
            })}
            {!answers.length && <li class="soft">it named no object</li>}
          </ul>
          {(result.collateral ?? []).length > 0 && <h3>What it changed beside the repair</h3>}
          {(result.collateral ?? []).length > 0 && (
            <ul>
              {(result.collateral ?? []).map((change) => (
                <li>
                  {clean(change.class)}: {clean(change.change)}
                </li>
              ))}
            </ul>
          )}
        </div>
      </div>
      {truth.propagation && truth.propagation.length > 0 && (
        <CauseGraph title="How it spread" graph={{ edges: truth.propagation, roots: truth.roots ?? [] }} right={new Set()} />
      )}
    </section>
  );
}
