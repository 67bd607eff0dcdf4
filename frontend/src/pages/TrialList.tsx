// The list of trials: filter, group, choose two to compare.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useDocument } from "../api";
import { Outcome, Stages } from "../components/Outcome";
import * as format from "../format";
import { choices, filtered, FILTERS, type Filter, grouped, type Grouping, GROUPS } from "../grouping";
import { useKeys } from "../keyboard";
import { link, type Route } from "../router";
import { clean } from "../text";
import type { Row, TrialList as Listing } from "../types";

const PAGE = 200;
const LABELS: Record<string, string> = {
  agent: "Agent",
  model: "Model",
  family: "Family",
  outcome: "Outcome",
  problem: "Problem",
  run: "Run",
};

function go(route: Route, change: Record<string, string>): void {
  location.hash = link(route.parts, { ...route.query, ...change });
}

export function trialLink(row: Row): string {
  return link(["trial", row.id]);
}

export function TrialListPage({ route }: { route: Route }): JSX.Element {
  const { value, problem } = useDocument<Listing>("api/trials", () => true);
  const [chosen, setChosen] = useState<string[]>([]);
  const [shown, setShown] = useState(PAGE);
  const [cursor, setCursor] = useState(0);
  const { query } = route;
  const filter: Filter = {
    q: query.q ?? "",
    agent: query.agent ?? "",
    model: query.model ?? "",
    family: query.family ?? "",
    outcome: query.outcome ?? "",
  };
  const by = (GROUPS as readonly string[]).includes(query.group ?? "") ? (query.group as Grouping) : "";
  const rows = value?.trials ?? [];
  const groups = grouped(filtered(rows, filter), by);
  const visible = groups.flatMap((group) => group.rows).slice(0, shown);
  const move = (by_: number): void => {
    const next = Math.max(0, Math.min(visible.length - 1, cursor + by_));
    setCursor(next);
    document.getElementById(`row-${next}`)?.focus();
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    "/": () => document.getElementById("filter-q")?.focus(),
  });
  if (!value) return <p role="status">{problem ? `Error: ${clean(problem)}` : "Loading …"}</p>;
  const toggle = (id: string): void =>
    setChosen((before) => (before.includes(id) ? before.filter((one) => one !== id) : [...before.slice(-1), id]));
  const total = groups.reduce((sum, group) => sum + group.rows.length, 0);
  const passed = groups.reduce((sum, group) => sum + group.passed, 0);
  let position = -1;
  return (
    <>
      <div class="head">
        <h1>Trials</h1>
        <p class="soft" id="count" role="status">
          {total} of {rows.length} trials, {passed} passed
          {problem ? ` · ${clean(problem)}` : ""}
        </p>
      </div>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Search
          <input id="filter-q" type="search" value={filter.q} onInput={(event) => go(route, { q: event.currentTarget.value })} />
        </label>
        {FILTERS.map((key) => (
          <label>
            {LABELS[key]}
            <select id={`filter-${key}`} value={filter[key]} onChange={(event) => go(route, { [key]: event.currentTarget.value })}>
              <option value="">all</option>
              {choices(rows, key).map((choice) => (
                <option value={choice}>{clean(choice)}</option>
              ))}
            </select>
          </label>
        ))}
        <label>
          Group by
          <select id="group" value={by} onChange={(event) => go(route, { group: event.currentTarget.value })}>
            <option value="">nothing</option>
            {GROUPS.map((one) => (
              <option value={one}>{LABELS[one]}</option>
            ))}
          </select>
        </label>
        <button type="button" id="compare" disabled={chosen.length !== 2} onClick={() => (location.hash = link(["compare", ...chosen]))}>
          Compare two
        </button>
      </form>
      {total === 0 ? (
        <p id="nothing">
          {rows.length ? "No trial fits these filters." : `There are no results in ${value.folders.map(clean).join(", ")} yet: `}
          {!rows.length && <code>srearena run ID --agent NAME</code>}
        </p>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Trials">
          <table id="trials">
            <thead>
              <tr>
                <th scope="col">
                  <span class="hidden">Compare</span>
                </th>
                <th scope="col">Problem</th>
                <th scope="col">Outcome</th>
                <th scope="col">Stages</th>
                <th scope="col">Agent</th>
                <th scope="col">Family</th>
                <th scope="col" class="number">Steps</th>
                <th scope="col" class="number">Tokens</th>
                <th scope="col" class="number">Cost</th>
                <th scope="col" class="number">Time</th>
                <th scope="col">Run</th>
                <th scope="col">Ended</th>
              </tr>
            </thead>
            {groups.map((group) => (
              <tbody>
                {by && (
                  <tr class="group">
                    <th scope="rowgroup" colSpan={12}>
                      {clean(group.name)}{" "}
                      <span class="soft">
                        {group.passed} of {group.graded} graded trials passed
                      </span>
                    </th>
                  </tr>
                )}
                {group.rows.map((row) => {
                  position += 1;
                  if (position >= shown) return null;
                  const number = position;
                  const label = row.problem || "(in progress)";
                  return (
                    <tr>
                      <td>
                        <input type="checkbox" aria-label={`Compare ${clean(label)} #${row.trial}`} checked={chosen.includes(row.id)} onChange={() => toggle(row.id)} />
                      </td>
                      <td class="text">
                        <a id={`row-${number}`} href={trialLink(row)} onFocus={() => setCursor(number)}>
                          {clean(label)}
                          {row.trial ? ` #${row.trial}` : ""}
                        </a>
                        {row.reason && <div class="reason">{clean(row.reason).slice(0, 240)}</div>}
                      </td>
                      <td>
                        <Outcome outcome={row.outcome} />
                      </td>
                      <td>
                        <Stages row={row} />
                      </td>
                      <td>
                        {clean(row.agent)}
                        {row.model && <div class="soft">{clean(row.model)}</div>}
                      </td>
                      <td>{clean(row.family)}</td>
                      <td class="number">{format.count(row.steps)}</td>
                      <td class="number">{row.tokens ? format.count(row.tokens) : "–"}</td>
                      <td class="number">{format.money(row.cost)}</td>
                      <td class="number">{format.seconds(row.seconds)}</td>
                      <td class="soft">{clean(row.run)}</td>
                      <td class="soft nowrap">{format.when(row.at)}</td>
                    </tr>
                  );
                })}
              </tbody>
            ))}
          </table>
        </div>
      )}
      {total > shown && (
        <button type="button" id="more" onClick={() => setShown(shown + PAGE)}>
          Show {Math.min(PAGE, total - shown)} more
        </button>
      )}
      <p class="soft keys">
        <kbd>j</kbd> <kbd>k</kbd> move, <kbd>Enter</kbd> opens, <kbd>/</kbd> searches
      </p>
    </>
  );
}
