// Two trials side by side: figures, verdicts, and the acts in the order in which they were done.
import type { JSX } from "preact";
import { useDocument } from "../api";
import { Outcome } from "../components/Outcome";
import { Block } from "../components/Text";
import * as format from "../format";
import { link, type Route } from "../router";
import { acts, divergence } from "../search";
import { clean } from "../text";
import type { Step, TrialDocument } from "../types";

function useTrial(id: string): { value?: TrialDocument; problem?: string } {
  return useDocument<TrialDocument>(`api/trial?id=${encodeURIComponent(id)}`, () => false);
}

export function ComparePage({ route }: { route: Route }): JSX.Element {
  const first = useTrial(route.parts[1] ?? "");
  const second = useTrial(route.parts[2] ?? "");
  const problem = first.problem ?? second.problem;
  if (!first.value || !second.value) return <p role="status">{problem ? `Error: ${clean(problem)}` : "Loading …"}</p>;
  return <Comparison a={first.value} b={second.value} />;
}

function Comparison({ a, b }: { a: TrialDocument; b: TrialDocument }): JSX.Element {
  const [left, right] = [acts(a.steps), acts(b.steps)];
  const different = divergence(a.steps, b.steps);
  const figures: [string, (trial: TrialDocument) => string][] = [
    ["Problem", ({ row }) => clean(row.problem)],
    ["Agent", ({ row }) => clean(row.agent)],
    ["Model", ({ row }) => clean(row.model) || "–"],
    ["Steps", ({ row }) => format.count(row.steps)],
    ["Tokens", ({ row }) => (row.tokens ? format.count(row.tokens) : "–")],
    ["Cost", ({ row }) => format.money(row.cost)],
    ["Time", ({ row }) => format.seconds(row.seconds)],
    ["Reason", ({ row }) => clean(row.reason) || "–"],
  ];
  const stages = [...new Set([...(a.result.stages ?? []), ...(b.result.stages ?? [])].map((stage) => stage.stage))];
  const verdict = (trial: TrialDocument, name: string): JSX.Element => {
    const stage = (trial.result.stages ?? []).find((one) => one.stage === name);
    if (!stage?.verdict) return <>–</>;
    return (
      <>
        <span class={`badge ${stage.verdict.passed ? "good" : "bad"}`}>{stage.verdict.passed ? "passed" : "failed"}</span>{" "}
        {clean((stage.verdict.reasons ?? [])[0])}
      </>
    );
  };
  return (
    <>
      <h1>Two trials side by side</h1>
      <div class="scroll" tabIndex={0} role="region" aria-label="Figures of both trials">
        <table id="figures">
          <thead>
            <tr>
              <th scope="col">
                <span class="hidden">Figure</span>
              </th>
              {[a, b].map(({ row }) => (
                <th scope="col">
                  <a href={link(["trial", row.id])}>
                    {clean(row.agent)} #{row.trial}
                  </a>{" "}
                  <Outcome outcome={row.outcome} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {figures.map(([name, of]) => (
              <tr>
                <th scope="row">{name}</th>
                <td class="text">{of(a)}</td>
                <td class="text">{of(b)}</td>
              </tr>
            ))}
            {stages.map((name) => (
              <tr>
                <th scope="row">{clean(name)}</th>
                <td class="text">{verdict(a, name)}</td>
                <td class="text">{verdict(b, name)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>Acts</h2>
      <p id="divergence">
        {different === undefined ? "Both do the same, as far as the shorter one goes." : `They do the same up to act ${different}, and differ from act ${different + 1} on.`}
      </p>
      <ol class="pairs" id="pairs">
        {Array.from({ length: Math.max(left.length, right.length) }, (_, index) => (
          <li class={index === different ? "differs" : ""}>
            <Act step={left[index]} number={index + 1} side="first" />
            <Act step={right[index]} number={index + 1} side="second" />
          </li>
        ))}
      </ol>
    </>
  );
}

function Act({ step, number, side }: { step: Step | undefined; number: number; side: string }): JSX.Element {
  if (!step) return <div class="act" />;
  return (
    <div class={`act step${step.failed ? " failed" : ""}`}>
      <div class="step-head">
        <span class="number">{number}</span>
        <span class="title">{clean(step.title)}</span>
      </div>
      {step.answer && <Block text={step.answer} label={`Answer of act ${number} of the ${side} trial`} tone="answer" />}
    </div>
  );
}
