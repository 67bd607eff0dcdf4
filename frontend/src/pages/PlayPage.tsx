// Choosing an incident to solve, and waiting until it is staged.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { send, useDocument } from "../api";
import { type Play, isOver } from "../incident/PlayPanel";
import { Waiting } from "../incident/Waiting";
import { link, type Route } from "../router";
import { clean } from "../text";

interface Problem {
  id: string;
  application: string;
  level: string;
  difficulty: string;
}

export function PlayPage({ route }: { route: Route }): JSX.Element {
  const id = route.parts[1];
  return id ? <Staging id={id} /> : <Choice />;
}

function Choice(): JSX.Element {
  const { value, problem } = useDocument<{ problems: Problem[] }>("api/problems", () => false);
  const [query, setQuery] = useState("");
  const [failure, setFailure] = useState("");
  const start = async (name: string): Promise<void> => {
    try {
      const { play } = (await send("api/play/start", { problem: name })) as { play: string };
      location.hash = link(["play", play]);
    } catch (error) {
      setFailure(error instanceof Error ? error.message : "the server does not answer");
    }
  };
  if (!value) return <Waiting problem={problem} />;
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = value.problems.filter((one) => words.every((word) => Object.values(one).join(" ").toLowerCase().includes(word)));
  return (
    <>
      <h1>Play</h1>
      <p>
        An application is deployed and broken, or not. You are the engineer on call: find out whether anything is wrong, where, and
        repair it. You have what agents have, and are graded as they are.
      </p>
      <div class="bar">
        <button type="button" class="primary" id="surprise" onClick={() => void start("")}>Start one that I do not know</button>
        <span role="status" class="bad">{clean(failure)}</span>
      </div>
      <div class="filters">
        <label>
          Or choose one
          <input type="search" id="search" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
        </label>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Problems">
        <table id="problems">
          <thead>
            <tr>
              <th scope="col">Problem</th>
              <th scope="col">Application</th>
              <th scope="col">Level</th>
              <th scope="col">Difficulty</th>
            </tr>
          </thead>
          <tbody>
            {fitting.map((one) => (
              <tr>
                <th scope="row"><button type="button" class="plain mono" onClick={() => void start(one.id)}>{one.id}</button></th>
                <td>{one.application}</td>
                <td>{one.level}</td>
                <td>{one.difficulty}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Staging({ id }: { id: string }): JSX.Element {
  const { value, problem } = useDocument<Play>(`api/play?play=${encodeURIComponent(id)}`, (play) => !isOver(play) && !play.incident, 1000);
  useEffect(() => {
    if (value?.incident) location.replace(link(["incident", value.incident]));
  }, [value?.incident]);
  if (!value) return <Waiting problem={problem} />;
  if (value.state === "failed") return <p role="alert">The episode did not start: {clean(value.error)}</p>;
  return <p role="status" class="empty">The application is deployed, runs for some minutes of its own time, and is broken, or not …</p>;
}
