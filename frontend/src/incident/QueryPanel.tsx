// An expression over the incident's metrics, as a chart and a table.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { useDocument } from "../api";
import * as format from "../format";
import type { Mark, QueryResult } from "../incident-types";
import { clean } from "../text";
import { Chart, MOST_LINES, Swatch } from "./Chart";
import { Waiting } from "./Waiting";

const RANGES: [number, string][] = [[300, "5 min"], [900, "15 min"], [1800, "30 min"], [3600, "1 h"], [10800, "3 h"]];
const EXAMPLES = [
  'sum by (service_name) (rate(traces_span_metrics_calls_total{span_kind="SPAN_KIND_SERVER"}[1m]))',
  'sum by (pod) (rate(container_cpu_usage_seconds_total{container!=""}[1m]))',
  "kube_pod_container_status_restarts_total > 0",
];

function labelText(labels: Record<string, string>): string {
  const { __name__: name = "", ...rest } = labels;
  const inner = Object.entries(rest).map(([key, value]) => `${key}="${value}"`).join(", ");
  return clean(`${name}${inner ? `{${inner}}` : ""}`) || "value";
}

interface QueryProps {
  id: string;
  live: boolean;
  marks: readonly Mark[];
  query: Record<string, string>;
  onQuery: (query: Record<string, string | null>) => void;
}

export function QueryPanel({ id, live, marks, query, onQuery }: QueryProps): JSX.Element {
  const expression = query.expr ?? "";
  const seconds = Number.parseInt(query.range ?? "1800", 10) || 1800;
  const [draft, setDraft] = useState(expression);
  const search = new URLSearchParams({ id, query: expression, seconds: String(seconds) });
  const { value, problem } = useDocument<QueryResult>(expression ? `api/incident/query?${search}` : "", () => live, 10000);
  const lines = useMemo(() => (value?.series ?? []).slice(0, MOST_LINES).map((one) => ({ label: labelText(one.labels), values: one.values })), [value]);
  const run = (): void => onQuery({ expr: draft.trim() });
  return (
    <>
      <form class="query" onSubmit={(event) => { event.preventDefault(); run(); }}>
        <label>
          <span class="hidden">PromQL expression</span>
          <textarea id="expression" rows={2} spellcheck={false} autocomplete="off" placeholder="PromQL expression; Ctrl-Enter runs it" value={draft}
            onInput={(event) => setDraft(event.currentTarget.value)}
            onKeyDown={(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); } }} />
        </label>
        <div class="bar">
          <button type="submit" class="primary" id="run-query">Run</button>
          <label class="inline">
            Range
            <select value={String(seconds)} onChange={(event) => onQuery({ range: event.currentTarget.value })}>
              {RANGES.map(([length, label]) => <option value={String(length)}>{label}</option>)}
            </select>
          </label>
          {!expression && EXAMPLES.map((example) => (
            <button type="button" class="example" onClick={() => { setDraft(example); onQuery({ expr: example }); }}><code>{example}</code></button>
          ))}
        </div>
      </form>
      {expression && !value && <Waiting problem={problem} />}
      {value && value.series.length === 0 && <p class="empty">The result is empty.</p>}
      {value && value.series.length > 0 && (
        <>
          <Chart title={`${value.series.length + value.left_out} series`} times={value.times} lines={lines} show={format.short} marks={marks} height={300} />
          <div class="scroll" tabIndex={0} role="region" aria-label="Series">
            <table id="series">
              <thead>
                <tr><th scope="col">Series</th><th scope="col" class="number">Now</th></tr>
              </thead>
              <tbody>
                {value.series.map((one, index) => (
                  <tr>
                    <td class="mono">
                      <Swatch index={index} /> {labelText(one.labels)}
                    </td>
                    <td class="number">{format.short(one.values.findLast((point) => point !== null))}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {value.series.length > MOST_LINES && <p class="soft">The first {MOST_LINES} series are drawn, all are in the table.</p>}
          {value.left_out > 0 && <p class="soft">{value.left_out} more series are not shown.</p>}
        </>
      )}
    </>
  );
}
