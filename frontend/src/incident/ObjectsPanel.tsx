// Objects: what has changed since they were first observed, lists by kind, and one object with its differences.
import type { JSX } from "preact";
import { useDocument } from "../api";
import * as format from "../format";
import type { Change, ObjectDocument, ObjectList, ObjectRow } from "../incident-types";
import { clean } from "../text";
import { Waiting } from "./Waiting";

interface ObjectsProps {
  id: string;
  live: boolean;
  query: Record<string, string>;
  onQuery: (query: Record<string, string | null>) => void;
}

const TONES: Record<string, string> = { created: "good", deleted: "bad", changed: "warn" };

export function ObjectsPanel({ id, live, query, onQuery }: ObjectsProps): JSX.Element {
  const kind = query.kind ?? "";
  const search = new URLSearchParams({ id, kind });
  const { value, problem } = useDocument<ObjectList>(`api/incident/objects?${search}`, () => live, 10000);
  if (!value) return <Waiting problem={problem} />;
  const open = (one: { kind: string; namespace: string; name: string }): void => onQuery({ of: one.kind, in: one.namespace, object: one.name });
  const rows: (ObjectRow & Partial<Change>)[] = value.changes ?? value.objects ?? [];
  return (
    <>
      <div class="filters">
        <label>
          Kind
          <select id="kind" value={kind} onChange={(event) => onQuery({ kind: event.currentTarget.value, object: null, of: null, in: null })}>
            <option value="">what has changed</option>
            {value.kinds.map((one) => <option value={one}>{one}</option>)}
          </select>
        </label>
      </div>
      {query.object && <ObjectView id={id} kind={query.of ?? ""} namespace={query.in ?? ""} name={query.object} onClose={() => onQuery({ object: null, of: null, in: null })} />}
      {!kind && <p class="soft">Changes {value.healthy ? "to the healthy system, before the fault." : `since ${format.time(value.since)} UTC, when these objects were first observed.`}</p>}
      {rows.length === 0 && <p class="empty">{kind ? "There is none." : "Nothing has changed."}</p>}
      {rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Objects">
          <table id="objects">
            <thead>
              <tr>
                <th scope="col">Object</th>
                <th scope="col">Namespace</th>
                {!kind && <th scope="col">Change</th>}
                {!kind && <th scope="col">Fields</th>}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr>
                  <th scope="row">
                    <button type="button" class="plain" onClick={() => open(row)}>{clean(row.kind)}/{clean(row.name)}</button>
                  </th>
                  <td class="soft">{clean(row.namespace)}</td>
                  {row.change && <td><span class={`badge ${TONES[row.change] ?? ""}`}>{clean(row.change)}</span></td>}
                  {row.change && <td class="mono">{clean(row.fields)}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function ObjectView({ id, kind, namespace, name, onClose }: { id: string; kind: string; namespace: string; name: string; onClose: () => void }): JSX.Element {
  const search = new URLSearchParams({ id, kind, namespace, name });
  const { value, problem } = useDocument<ObjectDocument>(`api/incident/object?${search}`, () => false);
  if (!value) return <Waiting problem={problem} />;
  return (
    <section class="panel flush" id="object" aria-labelledby="object-head">
      <div class="panel-head">
        <h2 id="object-head">{clean(kind)}/{clean(name)}</h2>
        <span class={`badge ${TONES[value.state] ?? ""}`}>{clean(value.state)}</span>
        <button type="button" onClick={onClose}>Close</button>
      </div>
      {value.differences.length > 0 && (
        <ul class="differences">
          {value.differences.map((one) => (
            <li>
              <code>{clean(one.path)}</code>
              {one.old !== undefined && one.old !== null && <del>{clean(one.old)}</del>}
              {one.new !== undefined && one.new !== null && <ins>{clean(one.new)}</ins>}
            </li>
          ))}
        </ul>
      )}
      <pre class="yaml" tabIndex={0} role="region" aria-label="The object as YAML">{clean(value.yaml)}</pre>
    </section>
  );
}
