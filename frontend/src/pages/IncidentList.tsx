// The incidents that can be looked at.
import type { JSX } from "preact";
import { useDocument } from "../api";
import { Waiting } from "../incident/Waiting";
import type { IncidentRow } from "../incident-types";
import { link } from "../router";
import { clean } from "../text";
import { worldLink } from "./WorldPage";

const KINDS: Record<string, string> = {
  cluster: "a running cluster of srearena up",
  episode: "a running episode",
  recording: "a recorded incident",
  rebuilt: "the system of a finished trial",
};

export function IncidentListPage(): JSX.Element {
  const { value, problem } = useDocument<{ incidents: IncidentRow[] }>("api/incidents", () => true, 5000);
  if (!value) return <Waiting problem={problem} />;
  return (
    <>
      <h1>Incidents</h1>
      {value.incidents.length === 0 && (
        <p id="nothing">
          Nothing is running. <code>srearena up hotel_reservation</code> starts an application, <code>srearena serve</code> and{" "}
          <code>srearena run</code> start episodes; they appear here.
        </p>
      )}
      <ul class="cards" id="incidents">
        {value.incidents.map((incident) => (
          <li class="card">
            <a class="card-link" href={incident.trial !== undefined ? worldLink(incident.trial, incident.step ?? 0) : link(["incident", incident.id])}>{clean(incident.name)}</a>
            <span class="soft">{KINDS[incident.kind] ?? incident.kind}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
