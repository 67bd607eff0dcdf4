// Requests, errors and latency of the services that deviate most, as the view draws them.
import type { JSX } from "preact";
import { Chart } from "../incident/Chart";
import { CHARTS } from "../incident/Overview";
import { LEVELS } from "../incident/ServiceGraph";
import { clean } from "../text";
import type { IncidentDetails } from "./data";

export function IncidentCharts({ charts }: { charts: NonNullable<IncidentDetails["charts"]> }): JSX.Element {
  return (
    <section id="charts" aria-label="Signals">
      <h2>Signals</h2>
      <p class="soft">The services that deviate most; what is shaded was usual. Times are UTC.</p>
      {charts.services.map((service) => (
        <section class="panel flush service" aria-label={clean(service.name)}>
          <div class="panel-head">
            <h2>{clean(service.name)}</h2>
            <span class={`badge level-${service.level}`}>{LEVELS[service.level] ?? ""}</span>
          </div>
          <div class="charts">
            {CHARTS.map(([measure, title, show]) => {
              const values = measure === "cpu" || measure === "memory" ? undefined : service[measure];
              if (!values?.some((value) => value !== null) || charts.times.length < 2) return null;
              return <Chart key={measure} title={title} times={charts.times} lines={[{ label: measure, values }]} show={show} baseline={charts.baseline} height={104} />;
            })}
          </div>
        </section>
      ))}
    </section>
  );
}
