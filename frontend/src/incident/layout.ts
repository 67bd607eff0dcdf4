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
  return layered(
    services.map((service) => service.name),
    calls.map((call) => [call.from, call.to]),
    { vertical, height: NODE_HEIGHT, longest: LONGEST_NAME, label: { width: LABEL_WIDTH, height: LABEL_HEIGHT } },
  );
}

interface Shape {
  vertical: boolean;
  height: number;
  // Characters of a name that are shown.
  longest: number;
  // Of the text at an edge.
  label: { width: number; height: number };
}

export function layered(names: readonly string[], pairs: readonly (readonly [string, string])[], shape: Shape): Placed {
  const { vertical } = shape;
  const longest = Math.max(0, ...names.map((name) => Math.min(name.length, shape.longest)));
  const nodeWidth = Math.max(NARROWEST, Math.round(longest * CHARACTER_WIDTH + 40));
  const graph = new Graph();
  graph.setGraph({ rankdir: vertical ? "TB" : "LR", nodesep: vertical ? 14 : 20, ranksep: vertical ? 26 : 34, edgesep: 8, marginx: 10, marginy: 10 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const name of names) graph.setNode(name, { width: nodeWidth, height: shape.height });
  for (const [from, to] of pairs) {
    if (from === to || !graph.hasNode(from) || !graph.hasNode(to)) continue;
    graph.setEdge(from, to, { ...shape.label, labelpos: "c" });
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
