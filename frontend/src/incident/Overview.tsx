// The overview of an incident: the service graph, the signals of a service, alerts, and all services as a table.
import type { JSX } from "preact";
import * as format from "../format";
import type { Alert, Mark, Measure, Overview, Reading, Service } from "../incident-types";
import { clean } from "../text";
import { Chart } from "./Chart";
import { callText, LEVELS, type Marked, ServiceGraph } from "./ServiceGraph";

// More services than this are drawn over the whole width.
const MANY = 14;
export const CHARTS: [Measure, string, (value: number | null) => string][] = [
  ["requests", "Requests", format.rate],
  ["errors", "Errors", format.percent],
  ["latency", "Latency, 95th percentile", format.milliseconds],
  ["cpu", "CPU, cores", format.short],
  ["memory", "Memory", format.bytes],
];

// The service to show first: the worst one, of these the one with the most requests.
export function firstService(services: readonly Service[]): string {
  const measured = services.filter((service) => service.requests);
  const sorted = [...measured].sort((a, b) => b.level - a.level || (b.requests?.now ?? 0) - (a.requests?.now ?? 0));
  return sorted[0]?.name ?? services[0]?.name ?? "";
}

interface OverviewProps {
  incident: Overview;
  marks: readonly Mark[];
  selected: string;
  marked?: Marked | undefined;
  // Without the tables below the graph, and with one line for alerts of one name.
  compact?: boolean;
  onSelect: (name: string) => void;
}

export function OverviewPanel({ incident, marks, selected, marked, compact = false, onSelect }: OverviewProps): JSX.Element {
  const name = selected || firstService(incident.services);
  const service = incident.services.find((one) => one.name === name);
  return (
    <>
      <div class={incident.services.length > MANY ? "overview wide" : "overview"}>
        <div>
        <section class="panel flush" aria-labelledby="graph-head">
          <div class="panel-head">
            <h2 id="graph-head">Services</h2>
            <Legend />
          </div>
          {incident.services.length > 0 ? (
            <ServiceGraph services={incident.services} calls={incident.edges} selected={selected} marked={marked} onSelect={(one) => onSelect(one === selected ? "" : one)} />
          ) : (
            <p class="empty">No requests have been traced yet.</p>
          )}
        </section>
        {compact ? <AlertNames alerts={incident.alerts} /> : <Alerts alerts={incident.alerts} />}
        {!compact && <ServiceTable services={incident.services} onSelect={onSelect} />}
        </div>
        <section class="panel flush signals" aria-labelledby="signals-head">
          <div class="panel-head">
            <h2 id="signals-head">{clean(name) || "Signals"}</h2>
            {service && <span class="soft">{clean(service.namespace)}</span>}
            {service && <span class={`badge level-${service.level}`}>{LEVELS[service.level]}</span>}
          </div>
          {service ? <ServiceSignals incident={incident} service={service} marks={marks} /> : <p class="empty">Choose a service.</p>}
        </section>
      </div>
    </>
  );
}

function Legend(): JSX.Element {
  return (
    <span class="legend soft">
      {LEVELS.map((word, level) => (
        <span class={`level-${level}`}>
          <i class="dot" aria-hidden="true" /> {word}
        </span>
      ))}
    </span>
  );
}

function ServiceSignals({ incident, service, marks }: { incident: Overview; service: Service; marks: readonly Mark[] }): JSX.Element {
  const calls = incident.edges.filter((call) => call.from === service.name || call.to === service.name);
  return (
    <>
      <div class="charts">
        {CHARTS.map(([measure, title, show]) => {
          const values = service.series[measure];
          if (!values?.some((value) => value !== null)) return null;
          const reading = measure === "cpu" || measure === "memory" ? undefined : service[measure];
          return (
            <Chart key={`${service.name} ${measure}`} title={title} times={incident.times} lines={[{ label: measure, values }]} show={show}
              marks={marks} now={reading?.now} usual={reading?.usual} baseline={incident.baseline} level={reading?.level ?? 0} height={104} />
          );
        })}
      </div>
      {calls.length > 0 && (
        <ul class="calls">
          {calls.map((call) => (
            <li class={`level-${call.level}`}>
              <i class="dot" aria-hidden="true" /> {callText(call)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

// One line for each name of alerts, with the services or objects that they are about.
function AlertNames({ alerts }: { alerts: Alert[] }): JSX.Element {
  const names = [...new Set(alerts.map((alert) => alert.name))];
  return (
    <section aria-labelledby="alerts-head">
      <h2 id="alerts-head">Alerts</h2>
      {alerts.length === 0 && <p class="soft">No alert fired.</p>}
      <ul class="alerts" id="alerts">
        {names.map((name) => {
          const same = alerts.filter((alert) => alert.name === name);
          const severity = same[0]?.severity ?? "";
          const about = same.map((alert) => clean(alert.labels.service_name ?? alert.labels.pod ?? alert.labels.deployment ?? alert.labels.node ?? ""));
          const since = same.map((alert) => alert.since).sort()[0] ?? "";
          return (
            <li class="alert firing">
              <strong>{clean(name)}</strong>{" "}
              <span class={`badge ${severity === "critical" ? "bad" : "warn"}`}>{clean(severity)}{same.length > 1 ? ` × ${same.length}` : ""}</span>{" "}
              <span class="soft">since {format.clock(since)}</span>
              <div class="soft">{[...new Set(about)].filter(Boolean).join(", ")}</div>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

export function Alerts({ alerts }: { alerts: Alert[] }): JSX.Element {
  const firing = alerts.filter((alert) => alert.state === "firing");
  const pending = alerts.length - firing.length;
  return (
    <section aria-labelledby="alerts-head">
      <h2 id="alerts-head">
        Alerts <span class="soft">{firing.length} firing{pending > 0 ? `, ${pending} pending` : ""}</span>
      </h2>
      {alerts.length === 0 && <p class="soft">No alert is firing.</p>}
      <ul class="alerts" id="alerts">
        {[...firing, ...alerts.filter((alert) => alert.state !== "firing")].map((alert) => (
          <li class={`alert ${alert.state}`}>
            <div>
              <strong>{clean(alert.name)}</strong>{" "}
              <span class={`badge ${alert.state === "firing" ? (alert.severity === "critical" ? "bad" : "warn") : ""}`}>
                {clean(alert.state)}
                {alert.severity ? ` · ${clean(alert.severity)}` : ""}
              </span>{" "}
              <span class="soft">since {format.clock(alert.since)}</span>
            </div>
            <div>{clean(alert.annotations.summary ?? alert.annotations.description ?? "")}</div>
            <div class="labels">
              {Object.entries(alert.labels).map(([key, value]) => (
                <code>
                  {clean(key)}={clean(value)}
                </code>
              ))}
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Cell({ reading, show }: { reading: Reading | undefined; show: (value: number | null) => string }): JSX.Element {
  if (!reading) return <td class="number">–</td>;
  return (
    <td class={`number level-${reading.level}`} title={reading.usual === null ? "" : `usually ${show(reading.usual)}`}>
      {show(reading.now)}
      {reading.level > 0 && <span class="hidden"> {LEVELS[reading.level]}</span>}
    </td>
  );
}

function ServiceTable({ services, onSelect }: { services: Service[]; onSelect: (name: string) => void }): JSX.Element {
  const measured = services.filter((service) => service.requests).sort((a, b) => b.level - a.level || a.name.localeCompare(b.name));
  if (!measured.length) return <></>;
  return (
    <section aria-labelledby="table-head">
      <h2 id="table-head">All services</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of services">
        <table id="services">
          <thead>
            <tr>
              <th scope="col">Service</th>
              <th scope="col">Namespace</th>
              <th scope="col" class="number">Requests</th>
              <th scope="col" class="number">Errors</th>
              <th scope="col" class="number">p95</th>
              <th scope="col">Compared with the baseline</th>
            </tr>
          </thead>
          <tbody>
            {measured.map((service) => (
              <tr>
                <th scope="row">
                  <button type="button" class="plain" onClick={() => { onSelect(service.name); scrollTo({ top: 0 }); }}>{clean(service.name)}</button>
                </th>
                <td class="soft">{clean(service.namespace)}</td>
                <Cell reading={service.requests} show={format.rate} />
                <Cell reading={service.errors} show={format.percent} />
                <Cell reading={service.latency} show={format.milliseconds} />
                <td class={`level-${service.level}`}><i class="dot" aria-hidden="true" /> {LEVELS[service.level]}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
