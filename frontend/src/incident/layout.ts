// Positions of the service graph: dagre's layered layout, recomputed only when services or calls appear or vanish.
import { Graph, layout } from "@dagrejs/dagre";
import type { Call, Service } from "../incident-types";

export const NODE_HEIGHT = 50;
const NARROWEST = 132;
const CHARACTER_WIDTH = 8.4;
export const LONGEST_NAME = 24;
const LABEL_WIDTH = 92;
const LABEL_HEIGHT = 30;

export interface Point {
  x: number;
  y: number;
}

export interface Placed {
  nodeWidth: number;
  width: number;
  height: number;
  nodes: Map<string, Point>;
  edges: Map<string, { points: Point[]; label: Point }>;
}

export const edgeKey = (from: string, to: string): string => `${from}\u0000${to}`;

export function place(services: readonly Service[], calls: readonly Call[], vertical: boolean): Placed {
  const longest = Math.max(0, ...services.map((service) => Math.min(service.name.length, LONGEST_NAME)));
  const nodeWidth = Math.max(NARROWEST, Math.round(longest * CHARACTER_WIDTH + 40));
  const graph = new Graph();
  graph.setGraph({ rankdir: vertical ? "TB" : "LR", nodesep: vertical ? 14 : 20, ranksep: vertical ? 26 : 34, edgesep: 8, marginx: 10, marginy: 10 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const service of services) graph.setNode(service.name, { width: nodeWidth, height: NODE_HEIGHT });
  for (const call of calls) {
    if (call.from === call.to || !graph.hasNode(call.from) || !graph.hasNode(call.to)) continue;
    graph.setEdge(call.from, call.to, { width: LABEL_WIDTH, height: LABEL_HEIGHT, labelpos: "c" });
  }
  layout(graph);
  const nodes = new Map<string, Point>();
  for (const name of graph.nodes()) {
    const node = graph.node(name) as Point;
    nodes.set(name, { x: node.x, y: node.y });
  }
  const edges = new Map<string, { points: Point[]; label: Point }>();
  for (const edge of graph.edges()) {
    const found = graph.edge(edge) as { points?: Point[]; x?: number; y?: number };
    const points = found.points ?? [];
    const middle = points[Math.floor(points.length / 2)] ?? { x: 0, y: 0 };
    edges.set(edgeKey(edge.v, edge.w), { points, label: { x: found.x ?? middle.x, y: found.y ?? middle.y } });
  }
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { nodeWidth, width, height, nodes, edges };
}

// A smooth path through the points of an edge.
export function curve(points: readonly Point[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${round(first.x)},${round(first.y)}`;
  let before = first;
  rest.forEach((point, index) => {
    const next = rest[index + 1];
    const end = next ? { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 } : point;
    path += before === first && !next ? `L${round(end.x)},${round(end.y)}` : `Q${round(point.x)},${round(point.y)} ${round(end.x)},${round(end.y)}`;
    before = end;
  });
  return path;
}

const round = (value: number): number => Math.round(value * 10) / 10;
