// How a failure spread, from causes to effects: of the ground truth, or of an answer.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { curve, edgeKey, layered } from "../incident/layout";
import { clean } from "../text";

export interface Causes {
  nodes?: unknown[];
  edges?: unknown[];
  roots?: unknown[];
}

const MOST_NODES = 60;
const MOST_EDGES = 200;
const LONGEST = 30;
const HEIGHT = 32;

interface CauseGraphProps {
  title: string;
  graph: Causes | undefined;
  // Nodes that are right, in an answer.
  right?: ReadonlySet<string>;
}

function pairsOf(graph: Causes | undefined): [string, string][] {
  return (graph?.edges ?? [])
    .filter((edge): edge is [unknown, unknown] => Array.isArray(edge) && edge.length >= 2)
    .slice(0, MOST_EDGES)
    .map(([from, to]) => [clean(from), clean(to)]);
}

export function CauseGraph({ title, graph, right = new Set() }: CauseGraphProps): JSX.Element {
  const { nodes, edges, placed } = useMemo(() => {
    const pairs = pairsOf(graph);
    const names = [...new Set([...(graph?.nodes ?? []).map(clean), ...pairs.flat()])].slice(0, MOST_NODES);
    const kept = pairs.filter(([from, to]) => from !== to && names.includes(from) && names.includes(to));
    const shape = { vertical: false, height: HEIGHT, longest: LONGEST, label: { width: 0, height: 0 } };
    return { nodes: names, edges: kept, placed: layered(names, kept, shape) };
  }, [graph]);
  const roots = new Set((graph?.roots ?? []).map(clean));
  const words = edges.map(([from, to]) => `${from} leads to ${to}`).join("; ") || nodes.join(", ");
  return (
    <section>
      <h2>{title}</h2>
      {nodes.length === 0 ? (
        <p class="soft">Nothing is named.</p>
      ) : (
        <div class="graph causes" tabIndex={0} role="region" aria-label={`Graph: ${title}`}>
          <svg viewBox={`0 0 ${placed.width} ${placed.height}`} width={placed.width} height={placed.height} role="img" aria-label={`${title}: ${words}`}>
            <defs>
              <marker id="cause-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">
                <path class="arrow" d="M0,0L8,4L0,8z" />
              </marker>
            </defs>
            {edges.map(([from, to]) => {
              const edge = placed.edges.get(edgeKey(from, to));
              return edge && <path class="edge" d={curve(edge.points)} marker-end="url(#cause-arrow)" />;
            })}
            {nodes.map((node) => {
              const at = placed.nodes.get(node);
              if (!at) return null;
              const kind = right.has(node) ? " hit" : roots.has(node) ? " root" : "";
              return (
                <g class={`cause${kind}`} transform={`translate(${at.x - placed.nodeWidth / 2},${at.y - HEIGHT / 2})`}>
                  <rect width={placed.nodeWidth} height={HEIGHT} rx="6" />
                  <text class="name" x="12" y="21">{node.length > LONGEST ? `…${node.slice(1 - LONGEST)}` : node}</text>
                  <title>{node}</title>
                </g>
              );
            })}
          </svg>
        </div>
      )}
    </section>
  );
}
