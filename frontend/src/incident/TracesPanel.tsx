// Traces: the newest ones, and one of them as a waterfall.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useDocument } from "../api";
import * as format from "../format";
import type { Trace, TraceRow } from "../incident-types";
import { clean } from "../text";
import { seriesColour } from "./Chart";
import { Waiting } from "./Waiting";

interface TracesProps {
  id: string;
  live: boolean;
  services: string[];
  query: Record<string, string>;
  onQuery: (query: Record<string, string | null>) => void;
}

export function TracesPanel({ id, live, services, query, onQuery }: TracesProps): JSX.Element {
  const service = query.from ?? "";
  const failed = query.failed === "true";
  const search = new URLSearchParams({ id, service, failed: String(failed) });
  const { value, problem } = useDocument<{ traces: TraceRow[] }>(`api/incident/traces?${search}`, () => live, 10000);
  const longest = Math.max(1, ...(value?.traces ?? []).map((trace) => trace.milliseconds));
  return (
    <>
      <div class="filters">
        <label>
          Service
          <select id="trace-service" value={service} onChange={(event) => onQuery({ from: event.currentTarget.value, trace: null })}>
            <option value="">where requests enter</option>
            {services.map((one) => <option value={one}>{clean(one)}</option>)}
          </select>
        </label>
        <label class="check">
          <input type="checkbox" id="failed" checked={failed} onChange={() => onQuery({ failed: failed ? null : "true", trace: null })} /> failed only
        </label>
      </div>
      {query.trace && <Waterfall id={id} trace={query.trace} onClose={() => onQuery({ trace: null })} />}
      {!value ? (
        <Waiting problem={problem} />
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Traces">
          <table id="traces">
            <thead>
              <tr>
                <th scope="col">Start</th>
                <th scope="col">Request</th>
                <th scope="col" class="number">Duration</th>
                <th scope="col"><span class="hidden">Duration as a bar</span></th>
                <th scope="col" class="number">Spans</th>
                <th scope="col" class="number">Failed</th>
                <th scope="col">Services</th>
              </tr>
            </thead>
            <tbody>
              {value.traces.map((trace) => (
                <tr aria-current={trace.id === query.trace ? "true" : undefined}>
                  <td class="soft nowrap">{format.time(trace.start)}</td>
                  <th scope="row">
                    <button type="button" class="plain" onClick={() => { onQuery({ trace: trace.id }); scrollTo({ top: 0 }); }}>
                      {clean(trace.service)}: {clean(trace.operation)}
                    </button>
                  </th>
                  <td class="number">{format.milliseconds(trace.milliseconds)}</td>
                  <td class="meter"><i style={{ width: `${(100 * trace.milliseconds) / longest}%` }} /></td>
                  <td class="number">{trace.spans}</td>
                  <td class={`number ${trace.failed ? "level-2" : ""}`}>{trace.failed}</td>
                  <td class="soft">{trace.services.map(clean).join(", ")}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {!value.traces.length && <p class="empty">No trace fits.</p>}
        </div>
      )}
    </>
  );
}

function Waterfall({ id, trace, onClose }: { id: string; trace: string; onClose: () => void }): JSX.Element {
  const { value, problem } = useDocument<Trace>(`api/incident/trace?id=${encodeURIComponent(id)}&trace=${encodeURIComponent(trace)}`, () => false);
  const [open, setOpen] = useState("");
  if (!value) return <Waiting problem={problem} />;
  const services = [...new Set(value.spans.map((span) => span.service))];
  const total = Math.max(value.milliseconds, 0.001);
  return (
    <section class="panel flush" aria-labelledby="waterfall-head" id="waterfall">
      <div class="panel-head">
        <h2 id="waterfall-head">Trace</h2>
        <code>{clean(value.id)}</code>
        <span class="soft">{value.spans.length} spans, {format.milliseconds(value.milliseconds)}</span>
        <button type="button" onClick={onClose}>Close</button>
      </div>
      <ol class="waterfall">
        {value.spans.map((span) => (
          <li class={span.failed ? "level-2" : ""}>
            <button type="button" class="plain span-row" aria-expanded={open === span.id} onClick={() => setOpen(open === span.id ? "" : span.id)}>
              <span class="span-name" style={{ paddingLeft: `${Math.min(span.depth, 14) * 12}px` }}>
                <b>{clean(span.service)}</b> {clean(span.operation)} {span.failed && <span class="badge bad">failed</span>}
              </span>
              <span class="span-bar">
                <i style={{
                  left: `${(100 * span.offset) / total}%`,
                  width: `${Math.max(0.3, (100 * span.milliseconds) / total)}%`,
                  background: `var(${seriesColour(services.indexOf(span.service))})`,
                }} />
              </span>
              <span class="span-time">{format.milliseconds(span.milliseconds)}</span>
            </button>
            {open === span.id && (
              <dl class="tags">
                {span.message && <><dt>status</dt><dd>{clean(span.message)}</dd></>}
                {Object.entries(span.tags).map(([key, tag]) => <><dt>{clean(key)}</dt><dd>{clean(tag)}</dd></>)}
                {span.logs.map((line) => <><dt>event</dt><dd>{clean(line)}</dd></>)}
              </dl>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
