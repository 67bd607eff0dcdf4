// Nodes, pods and events.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useDocument } from "../api";
import * as format from "../format";
import type { ClusterState } from "../incident-types";
import { clean } from "../text";
import { Waiting } from "./Waiting";

export function ClusterPanel({ id, live, namespaces }: { id: string; live: boolean; namespaces: string[] }): JSX.Element {
  const { value, problem } = useDocument<ClusterState>(`api/incident/cluster?id=${encodeURIComponent(id)}`, () => live, 5000);
  const [namespace, setNamespace] = useState(namespaces[0] ?? "");
  const [warnings, setWarnings] = useState(false);
  if (!value) return <Waiting problem={problem} />;
  const all = [...new Set(value.pods.map((pod) => pod.namespace))].sort();
  const pods = value.pods.filter((pod) => !namespace || pod.namespace === namespace).sort((a, b) => b.level - a.level || a.name.localeCompare(b.name));
  const events = value.events.filter((event) => (!namespace || event.namespace === namespace) && (!warnings || event.type !== "Normal"));
  return (
    <>
      <div class="filters">
        <label>
          Namespace
          <select id="namespace" value={namespace} onChange={(event) => setNamespace(event.currentTarget.value)}>
            <option value="">all</option>
            {all.map((one) => <option value={one}>{clean(one)}</option>)}
          </select>
        </label>
      </div>
      <h2>Nodes</h2>
      <ul class="cards" id="nodes">
        {value.nodes.map((node) => (
          <li class={`card level-${node.level}`}>
            <strong>{clean(node.name)}</strong>
            <div><i class="dot" aria-hidden="true" /> {clean(node.status)}</div>
            <div class="soft">{[`${clean(node.cpu)} CPU`, clean(node.memory), clean(node.version)].join(" · ")}</div>
          </li>
        ))}
      </ul>
      <h2>
        Pods <span class="soft">{pods.length}, {pods.filter((pod) => pod.level > 0).length} not ready</span>
      </h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Pods">
        <table id="pods">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Ready</th>
              <th scope="col">Status</th>
              <th scope="col" class="number">Restarts</th>
              <th scope="col">Created</th>
              <th scope="col">Node</th>
            </tr>
          </thead>
          <tbody>
            {pods.map((pod) => (
              <tr>
                <th scope="row" class="mono">{namespace ? "" : `${clean(pod.namespace)}/`}{clean(pod.name)}</th>
                <td>{clean(pod.ready)}</td>
                <td class={`level-${pod.level}`}><i class="dot" aria-hidden="true" /> {clean(pod.status)}</td>
                <td class="number">{pod.restarts}</td>
                <td class="soft nowrap">{format.when(pod.since)}</td>
                <td class="soft">{clean(pod.node)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>Events</h2>
      <div class="bar">
        <label class="inline">
          <input type="checkbox" checked={warnings} onChange={() => setWarnings(!warnings)} /> warnings only
        </label>
        <span class="soft">{events.length} events, the newest first</span>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Events">
        <table id="events">
          <thead>
            <tr>
              <th scope="col">Last seen</th>
              <th scope="col">Reason</th>
              <th scope="col">Object</th>
              <th scope="col">Message</th>
              <th scope="col" class="number">Count</th>
            </tr>
          </thead>
          <tbody>
            {events.map((event) => (
              <tr>
                <td class="soft nowrap">{format.clock(event.at)}</td>
                <td class={event.type === "Normal" ? "" : "level-1"}>{clean(event.reason)}</td>
                <td class="mono">{namespace ? "" : `${clean(event.namespace)}/`}{clean(event.object)}</td>
                <td class="text">{clean(event.message)}</td>
                <td class="number">{event.count}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
