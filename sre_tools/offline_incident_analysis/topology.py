"""Topology graph of a snapshot: objects, ownership, references, and the calls between services in traces.

The graph has no built-in knowledge of applications: names come from the recording and from its architecture file, if it
has one. A node is `namespace/Kind/name`; an application without an object is `App/name`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sre_tools.offline_incident_analysis.identity import entity_id, parse_identifier, plain_name
from sre_tools.offline_incident_analysis.object_versions import Obj, parse_body
from srearena.snapshots import Snapshot

WORKLOADS = ("Service", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod", "App")
_SKIPPED = frozenset({"Event", "Lease", "EndpointSlice", "ControllerRevision", "PodMetrics", "NodeMetrics"})
_HOST = re.compile(r"(?:^|[/@,\s])([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)(?=[:/,\s]|$)")
_PREFERRED_KINDS = ("Service", "Deployment", "App", "StatefulSet", "DaemonSet", "Pod", "ReplicaSet")


@dataclass(frozen=True, slots=True)
class Node:
    namespace: str | None
    kind: str
    name: str

    @property
    def id(self) -> str:
        return entity_id(self.namespace, self.kind, self.name)


@dataclass(slots=True)
class Topology:
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[tuple[str, str, str], Obj] = field(default_factory=dict)
    _out: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    _in: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))

    def node(self, namespace: str | None, kind: str, name: str) -> str:
        node = Node(namespace, str(kind), str(name))  # of a recording, where references may be anything
        self.nodes.setdefault(node.id, node)
        return node.id

    def edge(self, source: str, relation: str, target: str, **meta: Any) -> None:
        if source == target:
            return
        key = (source, relation, target)
        if key not in self.edges:
            self.edges[key] = {}
            self._out[source].append((relation, target))
            self._in[target].append((relation, source))
        self.edges[key].update(meta)

    def targets(self, node: str, *relations: str) -> list[str]:
        return [target for relation, target in self._out.get(node, ()) if relation in relations]

    def sources(self, node: str, *relations: str) -> list[str]:
        return [source for relation, source in self._in.get(node, ()) if relation in relations]

    def edges_of(self, node: str) -> Iterator[tuple[str, str, str, Obj]]:
        for key, meta in self.edges.items():
            if node in (key[0], key[2]):
                yield (*key, meta)

    def find(self, text: str) -> list[str]:
        """The nodes that match an identifier, Services and workloads first."""
        if text in self.nodes:
            return [text]
        target = parse_identifier(text)
        hits = [n for n in self.nodes.values() if target.matches(n.namespace, n.kind, n.name)]
        if not hits and not target.namespace:
            plain = plain_name(target.name)
            hits = [n for n in self.nodes.values() if plain_name(n.name) == plain and n.kind in _PREFERRED_KINDS]
        order = {kind: index for index, kind in enumerate(_PREFERRED_KINDS)}
        return [n.id for n in sorted(hits, key=lambda n: (order.get(n.kind, 9), n.id))]

    def aliases(self, node: str) -> list[str]:
        """The objects of the same application: its Service, workload, ReplicaSets and Pods."""
        members: dict[str, None] = {node: None}
        queue = [node]
        while queue:
            current = queue.pop(0)
            kind = self.nodes[current].kind
            nearby = self.targets(current, "is_alias") + self.sources(current, "is_alias")
            nearby += self.targets(current, "selects") if kind == "Service" else []
            nearby += self.sources(current, "selects") if kind == "Pod" else []
            nearby += [n for n in self.targets(current, "contains") if kind in WORKLOADS]
            nearby += self.sources(current, "contains")
            for other in nearby:
                if other not in members and self.nodes[other].kind in WORKLOADS:
                    members[other] = None
                    queue.append(other)
        return list(members)

    def neighbours(self, node: str) -> set[str]:
        return {target for _, target in self._out.get(node, ())} | {source for _, source in self._in.get(node, ())}

    def document(self) -> Obj:
        nodes = [{"id": n.id, "kind": n.kind, "name": n.name, "namespace": n.namespace} for n in self.nodes.values()]
        edges = [
            {"source": s, "relation": r, "target": t, **({"meta": m} if m else {})}
            for (s, r, t), m in self.edges.items()
        ]
        return {"nodes": nodes, "edges": edges}


_LATEST = """
SELECT kind, namespace, name, arg_max(body, observed_at) AS body FROM objects
WHERE kind IS NOT NULL AND name IS NOT NULL GROUP BY kind, namespace, name ORDER BY kind, namespace, name
"""
# All spans are joined with their parents, so the join uses hashes of service names and few columns.
_CALLS = """
WITH numbered AS (SELECT span_key, parent_key, hash(service) AS number, status = 'Error' AS failed FROM spans
    WHERE service IS NOT NULL),
  calls AS (SELECT p.number AS caller, c.number AS callee, count(*) AS calls, count(*) FILTER (WHERE c.failed) AS errors
    FROM numbered c JOIN numbered p ON c.parent_key = p.span_key WHERE c.number <> p.number GROUP BY ALL),
  services AS (SELECT hash(service) AS number, service, mode(namespace) AS namespace FROM spans
    WHERE service IS NOT NULL GROUP BY service)
SELECT p.service AS caller, c.service AS callee, calls, errors, p.namespace AS caller_ns, c.namespace AS callee_ns
FROM calls JOIN services p ON p.number = caller JOIN services c ON c.number = callee ORDER BY calls DESC, 1, 2
"""


def _get(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _mapping(value: Any) -> Obj:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[Obj]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _selects(selector: Any, labels: Any) -> bool:
    required, present = _mapping(selector), _mapping(labels)
    return bool(required) and all(present.get(key) == value for key, value in required.items())


class _Builder:
    def __init__(self) -> None:
        self.graph = Topology()
        self.bodies: dict[str, Obj] = {}
        self.pods: dict[str | None, list[str]] = defaultdict(list)
        self.services: dict[tuple[str | None, str], str] = {}

    def add_objects(self, snapshot: Snapshot) -> None:
        for row in snapshot.stream(_LATEST):
            if row["kind"] in _SKIPPED:
                continue
            node = self.graph.node(row["namespace"], row["kind"], row["name"])
            self.bodies[node] = parse_body(row["body"])
            if row["kind"] == "Pod":
                self.pods[row["namespace"]].append(node)
            if row["kind"] == "Service":
                self.services[row["namespace"], row["name"]] = node
        for node, body in self.bodies.items():
            self._add_relations(node, self.graph.nodes[node], body)

    def _add_relations(self, node: str, obj: Node, body: Obj) -> None:
        graph, space = self.graph, obj.namespace
        if space:
            graph.edge(graph.node(None, "Namespace", space), "contains", node)
        for owner in _dicts(_get(body, "metadata", "ownerReferences")):
            if owner.get("kind") and owner.get("name"):
                owned_by_node = owner["kind"] == "Node"
                graph.edge(graph.node(None if owned_by_node else space, owner["kind"], owner["name"]), "contains", node)
        if obj.kind == "Service":
            self._select(node, space, "selects", _get(body, "spec", "selector"))
            if entity_id(space, "Endpoints", obj.name) in graph.nodes:
                graph.edge(node, "contains", entity_id(space, "Endpoints", obj.name))
        elif obj.kind == "Pod":
            self._pod(node, space, body)
        elif obj.kind == "HorizontalPodAutoscaler":
            target = _mapping(_get(body, "spec", "scaleTargetRef"))
            if target.get("kind") and target.get("name"):
                graph.edge(node, "targets", graph.node(space, target["kind"], target["name"]))
        elif obj.kind in ("NetworkPolicy", "PodDisruptionBudget"):
            key = "podSelector" if obj.kind == "NetworkPolicy" else "selector"
            selector = _get(body, "spec", key)
            if selector == {}:
                for pod in self.pods[space]:
                    graph.edge(node, "targets", pod)
            self._select(node, space, "targets", _get(selector, "matchLabels"))
        elif "chaos" in str(body.get("apiVersion", "")):
            self._chaos(node, space, body)

    def _select(self, node: str, space: str | None, relation: str, selector: Any) -> None:
        for pod in self.pods[space]:
            if _selects(selector, _get(self.bodies[pod], "metadata", "labels")):
                self.graph.edge(node, relation, pod)

    def _chaos(self, node: str, space: str | None, body: Obj) -> None:
        spec = _mapping(body.get("spec"))
        inner = [spec, *(value for value in spec.values() if isinstance(value, dict))]
        for part in inner:
            selector = _get(part, "selector")
            namespaces = _get(selector, "namespaces")
            for namespace in namespaces if isinstance(namespaces, list) else [space]:
                self._select(node, namespace, "targets", _get(selector, "labelSelectors"))

    def _pod(self, node: str, space: str | None, body: Obj) -> None:
        graph, spec = self.graph, _mapping(body.get("spec"))
        if spec.get("nodeName"):
            graph.edge(graph.node(None, "Node", spec["nodeName"]), "contains", node)
        for kind, name in _references(spec):
            graph.edge(node, "depends_on", graph.node(space, kind, name))
        for container in _dicts(spec.get("containers")) + _dicts(spec.get("initContainers")):
            for variable in _dicts(container.get("env")):
                for host in _HOST.findall(str(variable.get("value") or "")):
                    name, _, domain = host.partition(".")
                    service = self.services.get((domain.split(".")[0] or space, name)) if domain else None
                    service = service or self.services.get((space, name))
                    if service and service not in graph.sources(node, "selects"):
                        graph.edge(node, "depends_on", service, variable=variable.get("name"))

    def application(self, name: str, space: str | None = None) -> str:
        """The node of an application: its Service or workload, or else a new `App` node."""
        hits = [n for n in self.graph.nodes.values() if n.name == name and n.kind in WORKLOADS[:4]]
        if not hits:
            plain = plain_name(name)
            hits = [n for n in self.graph.nodes.values() if plain_name(n.name) == plain and n.kind in WORKLOADS[:4]]
        if not hits:
            return self.graph.node(None, "App", name)
        best = min(hits, key=lambda n: (n.namespace != space, WORKLOADS.index(n.kind), n.id)).id
        if self.graph.nodes[best].name != name:
            self.graph.edge(self.graph.node(None, "App", name), "is_alias", best)
        return best

    def add_calls(self, snapshot: Snapshot) -> None:
        for row in snapshot.rows(_CALLS):
            caller = self.application(row["caller"], row["caller_ns"])
            callee = self.application(row["callee"], row["callee_ns"])
            self.graph.edge(caller, "calls", callee, calls=row["calls"], errors=row["errors"], seen_in="traces")

    def add_architecture(self, document: Obj) -> None:
        for group in ("services", "infrastructure"):
            for item in _dicts(_get(document, "components", group)):
                if item.get("name"):
                    self.application(str(item["name"]))
        for item in _dicts(document.get("dependencies")):
            if item.get("source") and item.get("target"):
                more = {k: v for k, v in item.items() if k not in ("source", "target")}
                source, target = self.application(str(item["source"])), self.application(str(item["target"]))
                self.graph.edge(source, "calls", target, **more)


def _references(spec: Obj) -> Iterator[tuple[str, str]]:
    if spec.get("serviceAccountName"):
        yield "ServiceAccount", spec["serviceAccountName"]
    for volume in _dicts(spec.get("volumes")):
        for source in [volume, *_dicts(_get(volume, "projected", "sources"))]:
            for kind, path in (
                ("ConfigMap", ("configMap", "name")),
                ("Secret", ("secret", "secretName")),
                ("Secret", ("secret", "name")),
                ("PersistentVolumeClaim", ("persistentVolumeClaim", "claimName")),
            ):
                if name := _get(source, *path):
                    yield kind, name
    for container in _dicts(spec.get("containers")) + _dicts(spec.get("initContainers")):
        for item in _dicts(container.get("envFrom")) + [
            v for e in _dicts(container.get("env")) if isinstance(v := e.get("valueFrom"), dict)
        ]:
            for kind, keys in (
                ("ConfigMap", ("configMapRef", "configMapKeyRef")),
                ("Secret", ("secretRef", "secretKeyRef")),
            ):
                for key in keys:
                    if name := _get(item, key, "name"):
                        yield kind, name


def build(snapshot: Snapshot, architecture: Obj | None = None) -> Topology:
    """Build the graph of a snapshot; `architecture` replaces the recording's architecture file."""
    builder = _Builder()
    builder.add_objects(snapshot)
    builder.add_calls(snapshot)
    document = architecture or snapshot.architecture()
    if document:
        builder.add_architecture(document)
    return builder.graph


def topology_of(snapshot: Snapshot) -> Topology:
    """The cached graph of a snapshot."""
    return snapshot.derived(build, "objects", "spans")


def _build_without_calls(snapshot: Snapshot) -> Topology:
    builder = _Builder()
    builder.add_objects(snapshot)
    for kind, name in snapshot.measured_objects():
        if kind == "service":
            builder.application(name)
    if document := snapshot.architecture():
        builder.add_architecture(document)
    return builder.graph


def measured_topology(snapshot: Snapshot, text: str) -> Topology:
    """The graph to find the metrics of an identifier in: without calls, since traces are large, where that suffices."""
    graph = snapshot.derived(_build_without_calls, "objects")
    return graph if graph.find(text) else topology_of(snapshot)


def pods_and_owners(graph: Topology, text: str) -> tuple[list[str], list[str]]:
    """The names of the pods that an identifier stands for, and of the Services and workloads they belong to."""
    members = {member for node in graph.find(text)[:3] for member in graph.aliases(node)}
    nodes = [graph.nodes[member] for member in members]
    pods = sorted(node.name for node in nodes if node.kind == "Pod")
    owners = sorted({node.name for node in nodes if node.kind != "Pod"} | {parse_identifier(text).name})
    return pods, owners
