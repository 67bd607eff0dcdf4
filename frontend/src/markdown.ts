// A trial as Markdown, to paste into an issue or a chat.
import * as format from "./format";
import { clean } from "./text";
import type { StageResult, Step, TrialDocument } from "./types";

const LONGEST = 4000;

// A fence that is longer than every run of backticks in the text, so that the text cannot end its block.
export function fenced(text: string): string {
  const cut = text.length > LONGEST ? `${text.slice(0, LONGEST)}\n… (${text.length - LONGEST} more characters)` : text;
  const longest = Math.max(2, ...(cut.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}text\n${cut}\n${fence}`;
}

// Text inside a line or a table cell.
export function inline(text: string): string {
  return clean(text).replace(/\s+/g, " ").replace(/[\\`*_{}[\]<>()#+!|~]/g, "\\$&");
}

export function stepMarkdown(step: Step, number: number): string {
  const facts = [
    step.seconds === undefined ? "" : format.seconds(step.seconds),
    step.tokens_in || step.tokens_out ? `${step.tokens_in ?? 0} + ${step.tokens_out ?? 0} tokens` : "",
    step.cost ? format.money(step.cost) : "",
    step.failed ? "failed" : "",
  ].filter(Boolean);
  const lines = [`### ${number}. ${inline(step.title)}`];
  if (facts.length) lines.push(facts.join(" · "));
  if (step.thought) lines.push(step.thought.split("\n").map((line) => `> ${inline(line)}`).join("\n"));
  if (step.command) lines.push(fenced(clean(step.command)));
  if (step.answer) lines.push(fenced(clean(step.answer)));
  return lines.join("\n\n");
}

function stageLine(stage: StageResult): string {
  const verdict = stage.verdict ? (stage.verdict.passed ? "passed" : "failed") : "not graded";
  const answer = stage.submitted ? clean(stage.submission) || "done" : "no answer";
  const reasons = (stage.verdict?.reasons ?? []).join("; ");
  return `| ${inline(stage.stage)} | ${inline(answer)} | ${verdict} | ${inline(reasons)} |`;
}

export function trialMarkdown(trial: TrialDocument): string {
  const { row, result, steps } = trial;
  const facts = [
    `${format.count(row.steps)} steps`,
    format.seconds(row.seconds),
    row.tokens ? `${format.count(row.tokens)} tokens` : "",
    row.cost ? format.money(row.cost) : "",
    row.model,
  ].filter(Boolean);
  const lines = [`# ${inline(row.problem || "Trial")}: ${inline(row.agent)}, ${inline(row.outcome)}`, facts.map(inline).join(" · ")];
  if (row.reason) lines.push(inline(row.reason));
  const stages = result.stages ?? [];
  if (stages.length) {
    lines.push(["| stage | answer | verdict | reasons |", "| --- | --- | --- | --- |", ...stages.map(stageLine)].join("\n"));
  }
  const truth = result.ground_truth;
  if (truth?.roots?.length) lines.push(`Ground truth: ${truth.roots.map(inline).join(", ")}. ${inline(truth.explanation ?? "")}`);
  lines.push("## Transcript", ...steps.map((step, index) => stepMarkdown(step, index + 1)));
  return `${lines.join("\n\n")}\n`;
}
