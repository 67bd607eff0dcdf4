// Playing: the question, the answer, a terminal with kubectl, and the verdicts at the end.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { send, useDocument } from "../api";
import { link } from "../router";
import { clean } from "../text";
import type { StageResult } from "../types";

export interface Play {
  id: string;
  state: "starting" | "playing" | "grading" | "ended" | "failed";
  problem?: string;
  incident?: string;
  error?: string;
  status?: { finished: boolean; stage: number; stages: number; name: string; question: string; seconds: number };
  result?: { outcome: string; reason?: string; stages: StageResult[]; session?: string };
}

interface Entry {
  line: string;
  answer?: string;
}

export const isOver = (play: Play): boolean => play.state === "ended" || play.state === "failed";

const QUICK = ["kubectl get pods", "kubectl get events --sort-by=.lastTimestamp", "get_alerts()"];

function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : "the server does not answer";
}

// What is sent as the answer: JSON where it is JSON, otherwise names separated by commas or a text.
export function answerOf(stage: string, text: string): unknown {
  const trimmed = text.trim();
  if (!trimmed) return null;
  try {
    return JSON.parse(trimmed);
  } catch {
    return stage === "localization" ? trimmed.split(/[,\n]/).map((name) => name.trim()).filter(Boolean) : trimmed;
  }
}

export function PlayPanel({ id }: { id: string }): JSX.Element {
  const { value, reload } = useDocument<Play>(`api/play?play=${encodeURIComponent(id)}`, (play) => !isOver(play), 3000);
  return (
    <section class="panel flush play" aria-labelledby="play-head" id="play">
      <div class="panel-head">
        <h2 id="play-head">You are on call</h2>
        {value?.problem && <code>{clean(value.problem)}</code>}
        {value?.status && <span class="soft">{Math.round(value.status.seconds / 60)} min</span>}
        {value && !isOver(value) && <button type="button" onClick={() => void send("api/play/end", { play: id }).then(() => reload?.())}>Give up</button>}
      </div>
      {value?.state === "grading" && <p class="empty" role="status">Grading …</p>}
      {value && isOver(value) && <Verdict play={value} />}
      {value?.status && value.state === "playing" && <Question play={value} onAnswer={() => reload?.()} />}
      <Terminal id={id} open={value?.state === "playing"} />
    </section>
  );
}

function Question({ play, onAnswer }: { play: Play; onAnswer: () => void }): JSX.Element {
  const status = play.status!;
  const [answer, setAnswer] = useState("");
  const [problem, setProblem] = useState("");
  const submit = async (solution: unknown): Promise<void> => {
    try {
      await send("api/play/submit", { play: play.id, solution: JSON.stringify(solution) });
      setAnswer("");
      setProblem("");
    } catch (error) {
      setProblem(problemOf(error));
    }
    onAnswer();
  };
  return (
    <form class="question" onSubmit={(event) => { event.preventDefault(); void submit(answerOf(status.name, answer)); }}>
      <p id="question">{clean(status.question)}</p>
      <div class="bar">
        {status.name === "detection" ? (
          <>
            <button type="button" class="primary" onClick={() => void submit("Yes")}>Yes</button>
            <button type="button" onClick={() => void submit("No")}>No</button>
          </>
        ) : status.name === "mitigation" ? (
          <button type="button" class="primary" onClick={() => void submit(null)}>It is repaired</button>
        ) : (
          <>
            <input id="answer-text" aria-label="Answer" placeholder={status.name === "localization" ? "names, separated by commas" : "answer"} value={answer}
              onInput={(event) => setAnswer(event.currentTarget.value)} />
            <button type="submit" class="primary">Submit</button>
          </>
        )}
        <span role="status" class="soft">{clean(problem)}</span>
      </div>
    </form>
  );
}

function Verdict({ play }: { play: Play }): JSX.Element {
  if (play.state === "failed") return <p class="empty" role="alert">The episode did not start or failed: {clean(play.error)}</p>;
  const result = play.result!;
  return (
    <div class="question" id="verdict">
      <p>
        <span class={`badge ${result.outcome === "pass" ? "good" : "bad"}`}>{clean(result.outcome)}</span> {clean(result.reason)}
      </p>
      <ul class="names">
        {result.stages.filter((stage) => stage.verdict).map((stage) => (
          <li class={stage.verdict?.passed ? "good" : "bad"}>
            {clean(stage.stage)}: {stage.verdict?.passed ? "passed" : "failed"} <span class="soft">{clean(stage.verdict?.reasons?.[0])}</span>
          </li>
        ))}
      </ul>
      {result.session && <a class="button" href={link(["session", result.session])}>Open the trial</a>}
    </div>
  );
}

function Terminal({ id, open }: { id: string; open: boolean }): JSX.Element {
  const [entries, setEntries] = useState<Entry[]>([]);
  const [line, setLine] = useState("");
  const [recalled, setRecalled] = useState(-1);
  const output = useRef<HTMLDivElement>(null);
  const running = entries.some((entry) => entry.answer === undefined);
  useEffect(() => {
    if (output.current) output.current.scrollTop = output.current.scrollHeight;
  }, [entries]);
  const run = async (text: string): Promise<void> => {
    if (!text.trim() || running) return;
    setLine("");
    setRecalled(-1);
    setEntries((before) => [...before, { line: text }]);
    let answer: string;
    try {
      answer = String(((await send("api/play/act", { play: id, line: text })) as { state?: unknown }).state ?? "");
    } catch (error) {
      answer = `Error: ${problemOf(error)}`;
    }
    setEntries((before) => before.map((entry) => (entry.answer === undefined ? { ...entry, answer } : entry)));
  };
  const recall = (step: number): void => {
    const next = Math.min(entries.length - 1, recalled + step);
    setRecalled(next);
    setLine(next < 0 ? "" : (entries[entries.length - 1 - next]?.line ?? ""));
    if (next < -1) setRecalled(-1);
  };
  return (
    <div class="terminal">
      <div class="terminal-output" ref={output} tabIndex={0} role="log" aria-label="Terminal" id="terminal">
        {entries.length === 0 && <p class="soft">kubectl as the engineer on call, and the actions of agents: get_logs("namespace", "service"), get_metrics("promql"), get_traces("service"), get_alerts(), wait(60).</p>}
        {entries.map((entry) => (
          <>
            <div class="prompt"><span aria-hidden="true">$ </span>{clean(entry.line)}</div>
            <pre>{entry.answer === undefined ? "…" : clean(entry.answer)}</pre>
          </>
        ))}
      </div>
      <form class="terminal-line" onSubmit={(event) => { event.preventDefault(); void run(line); }}>
        <span aria-hidden="true">$</span>
        <input id="command" aria-label="Command" autocomplete="off" autocapitalize="off" spellcheck={false} placeholder="kubectl get pods" value={line} disabled={!open}
          onInput={(event) => setLine(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
            event.preventDefault();
            recall(event.key === "ArrowUp" ? 1 : -1);
          }} />
        <button type="submit" disabled={!open || running}>Run</button>
      </form>
      {open && entries.length === 0 && (
        <div class="bar quick">
          {QUICK.map((command) => <button type="button" onClick={() => void run(command)}><code>{command}</code></button>)}
        </div>
      )}
    </div>
  );
}
