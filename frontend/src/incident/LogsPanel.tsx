// Logs with search.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useDocument } from "../api";
import { Text } from "../components/Text";
import * as format from "../format";
import type { Logs } from "../incident-types";
import { clean } from "../text";
import { Waiting } from "./Waiting";

const SEVERE = /\b(error|err|fatal|panic|exception|critical)\b/i;
const WARNING = /\b(warn|warning)\b/i;
const PAUSE = 350;
const ALL = "*";

function severity(line: string): string {
  return SEVERE.test(line) ? "level-2" : WARNING.test(line) ? "level-1" : "";
}

interface LogsProps {
  id: string;
  live: boolean;
  namespaces: string[];
  workloads: string[];
  query: Record<string, string>;
  onQuery: (query: Record<string, string | null>) => void;
}

export function LogsPanel({ id, live, namespaces, workloads, query, onQuery }: LogsProps): JSX.Element {
  const [text, setText] = useState(query.q ?? "");
  const namespace = query.namespace ?? namespaces[0] ?? "";
  const workload = query.workload ?? "";
  useEffect(() => {
    const timer = setTimeout(() => text !== (query.q ?? "") && onQuery({ q: text }), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  const search = new URLSearchParams({ id, text: query.q ?? "", namespace: namespace === ALL ? "" : namespace, workload });
  const { value, problem } = useDocument<Logs>(`api/incident/logs?${search}`, () => live, 5000);
  return (
    <>
      <div class="filters">
        <label>
          Search
          <input id="search" type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <label>
          Namespace
          <select value={namespace} onChange={(event) => onQuery({ namespace: event.currentTarget.value })}>
            {[...new Set([...namespaces, namespace])].filter((one) => one && one !== ALL).map((one) => <option value={one}>{clean(one)}</option>)}
            <option value={ALL}>all</option>
          </select>
        </label>
        <label>
          Workload
          <select id="workload" value={workload} onChange={(event) => onQuery({ workload: event.currentTarget.value })}>
            <option value="">all</option>
            {[...new Set([...workloads, workload])].filter(Boolean).map((one) => <option value={one}>{clean(one)}</option>)}
          </select>
        </label>
      </div>
      {!value ? (
        <Waiting problem={problem} />
      ) : (
        <>
          <p class="soft">
            {value.lines.length} lines{value.limited ? ", more fit" : ""}, the newest first · <code>{clean(value.query)}</code>
          </p>
          <div class="log scroll" tabIndex={0} role="region" aria-label="Log lines" id="log">
            {value.lines.map((line) => (
              <div class={`log-line ${severity(line.line)}`}>
                <span class="soft">{format.time(line.at)}</span>
                <span class="log-pod">{clean(line.pod)}</span>
                <span class="log-text"><Text text={clean(line.line)} query={query.q ?? ""} /></span>
              </div>
            ))}
            {!value.lines.length && <p class="empty">No line fits.</p>}
          </div>
        </>
      )}
    </>
  );
}
