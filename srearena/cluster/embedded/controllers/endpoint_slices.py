"""EndpointSlices: the addresses of a Service's pods, in slices, with their readiness."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.controllers.pod_sets import is_refused_for_good
from srearena.cluster.embedded.controllers.service_pods import (
    HEADLESS,
    LAST_CHANGE,
    ServiceFollower,
    host_name,
    is_headless,
    is_ready,
    ports_key,
    ports_on,
    target_reference,
)
from srearena.cluster.embedded.controllers.slice_layout import layout
from srearena.cluster.embedded.objects import (
    Obj,
    annotations_of,
    condition_is,
    copy_of,
    dig,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
)
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

SLICES = "endpointslices.discovery.k8s.io"
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
ZONE = "topology.kubernetes.io/zone"
_OURS = "endpointslice-controller.k8s.io"
_MIRROR = "endpointslicemirroring-controller.k8s.io"
_MIRROR_MOST = 1000


def service_of(piece: Obj) -> tuple[str, ...]:
    name = labels_of(piece).get(SERVICE_NAME)
    return (f"{namespace_of(piece)}/{name}",) if name else ()


class EndpointSliceController(ServiceFollower):
    name = "endpointslice-controller"
    source = "endpoint-slice-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._writing = False
        self.store.add_index(SLICES, "service", service_of)

    def start(self) -> None:
        super().start()
        self.world.on_change(SLICES, self._slice_changed)

    def _slice_changed(self, change: Change) -> None:
        """Reconcile a slice that was changed by another client."""
        if self._writing or labels_of(change.old or change.new).get(MANAGED_BY) != _OURS:
            return
        for key in service_of(change.old or change.new):
            self.enqueue(key)

    def reconcile(self, key: str) -> None:
        self._writing = True
        try:
            self._reconcile(key)
        finally:
            self._writing = False

    def _reconcile(self, key: str) -> None:
        namespace, name = split_key(key)
        service = self.client.get("services", namespace, name)
        known = [
            piece
            for piece in self.store.indexed(SLICES, "service", key)
            if labels_of(piece).get(MANAGED_BY) == _OURS and not is_terminating(piece)
        ]
        if service is None:
            for piece in known:
                self.client.delete(SLICES, piece)
            return
        pods = self.selected(service)
        if pods is None or is_terminating(service):
            return
        try:
            self._bring_in_line(service, known, pods)
        except ApiError as problem:
            if not is_refused_for_good(problem):
                text = f"Error updating Endpoint Slices for Service {key_of(service)}: {problem.message}"
                self.recorder.event(service, "Warning", "FailedToUpdateEndpointSlices", text)
                raise

    def _bring_in_line(self, service: Obj, known: list[Obj], pods: list[Obj]) -> None:
        labels = {**labels_of(service), SERVICE_NAME: name_of(service), MANAGED_BY: _OURS}
        if is_headless(service):
            labels[HEADLESS] = ""
        ports_by_key: dict[str, list[Obj]] = {}
        wanted: dict[str, list[Obj]] = {}
        for pod in pods:
            ports = ports_on(service, pod)
            ports_by_key[ports_key(ports)] = ports
            wanted.setdefault(ports_key(ports), []).append(self._endpoint(service, pod))
        present: dict[str, list[Obj]] = {}
        for piece in known:
            present.setdefault(ports_key(piece.get("ports") or []), []).append(piece)
        if not wanted:
            self._leave_placeholder(service, labels, known)
            return
        for key in sorted({*wanted, *present}):
            plan = layout(present.get(key, []), wanted.get(key, []))
            by_name = {name_of(piece): piece for piece in present.get(key, [])}
            for name, piece in by_name.items():
                contents: list[Obj] = plan.update[name] if name in plan.update else piece.get("endpoints") or []
                if name not in plan.delete and (name in plan.update or labels_of(piece) != labels):
                    self._update(piece, labels, contents)
            for fresh in plan.create:
                self._create(service, labels, ports_by_key[key], fresh)
            for name in plan.delete:
                self.client.delete(SLICES, by_name[name])

    def _leave_placeholder(self, service: Obj, labels: dict[str, str], known: list[Obj]) -> None:
        """A service without pods still has a slice, an empty one."""
        empty = next((piece for piece in known if not piece.get("endpoints") and not piece.get("ports")), None)
        for piece in known:
            if piece is not empty:
                self.client.delete(SLICES, piece)
        if empty is None:
            self._create(service, labels, [], [])
        elif labels_of(empty) != labels:
            self._update(empty, labels, [])

    def _endpoint(self, service: Obj, pod: Obj) -> Obj:
        endpoint: Obj = {
            "addresses": [pod["status"]["podIP"]],
            "conditions": {
                "ready": is_ready(service, pod),
                "serving": condition_is(pod, "Ready"),
                "terminating": is_terminating(pod),
            },
            "targetRef": target_reference(pod),
        }
        node: str = dig(pod, "spec", "nodeName", default="")
        zone = labels_of(self.store.get("nodes", "", node) or {}).get(ZONE)
        if node:
            endpoint["nodeName"] = node
        if zone:
            endpoint["zone"] = zone
        if host_name(service, pod):
            endpoint["hostname"] = host_name(service, pod)
        hints = _hints(service, node, zone)
        if hints and endpoint["conditions"]["ready"]:
            endpoint["hints"] = hints
        return endpoint

    def _update(self, piece: Obj, labels: dict[str, str], endpoints: list[Obj]) -> None:
        def change(obj: Obj) -> None:
            obj["metadata"]["labels"] = dict(labels)
            obj["metadata"].setdefault("annotations", {})[LAST_CHANGE] = self.clock.timestamp()
            obj["endpoints"] = copy_of({"endpoints": endpoints})["endpoints"]

        self.client.modify(SLICES, namespace_of(piece), name_of(piece), change)

    def _create(self, service: Obj, labels: dict[str, str], ports: list[Obj], endpoints: list[Obj]) -> None:
        endpoint_slice = _slice(service, labels, ports, endpoints)
        endpoint_slice["metadata"]["annotations"] = {LAST_CHANGE: self.clock.timestamp()}
        self.client.create(SLICES, endpoint_slice)


def _slice(owner: Obj, labels: dict[str, str], ports: list[Obj], endpoints: list[Obj]) -> Obj:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{name_of(owner)}-",
            "namespace": namespace_of(owner),
            "labels": dict(labels),
            "ownerReferences": [owner_reference(owner)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports,
    }


def _hints(service: Obj, node: str, zone: str | None) -> Obj:
    """Topology hints of an endpoint, if the service requests topology-aware routing."""
    wish = dig(service, "spec", "trafficDistribution")
    hints: Obj = {}
    if wish in ("PreferClose", "PreferSameZone", "PreferSameNode") and zone:
        hints["forZones"] = [{"name": zone}]
    if wish == "PreferSameNode" and node:
        hints["forNodes"] = [{"name": node}]
    return hints


class EndpointSliceMirroring(Controller):
    """Mirror manually written Endpoints of a service without a selector to slices."""

    name = "endpointslicemirroring-controller"
    source = "endpoint-slice-mirroring-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.store.add_index(SLICES, "service", service_of)

    def start(self) -> None:
        self.watch("endpoints")
        self.watch("services")

    def reconcile(self, key: str) -> None:
        namespace, name = split_key(key)
        endpoints = self.client.get("endpoints", namespace, name)
        service = self.client.get("services", namespace, name)
        known = [
            piece
            for piece in self.store.indexed(SLICES, "service", key)
            if labels_of(piece).get(MANAGED_BY) == _MIRROR and not is_terminating(piece)
        ]
        wanted = self._subsets(service, endpoints)
        for piece in known:
            key_of_piece = ports_key(piece.get("ports") or [])
            if key_of_piece not in wanted:
                self.client.delete(SLICES, piece)
        if endpoints is None:
            return
        labels = {**labels_of(endpoints), SERVICE_NAME: name, MANAGED_BY: _MIRROR}
        for ports_name, (ports, contents) in wanted.items():
            same = [piece for piece in known if ports_key(piece.get("ports") or []) == ports_name]
            plan = layout(same, contents)
            by_name = {name_of(piece): piece for piece in same}
            for piece_name, part in plan.update.items():
                self._update(by_name[piece_name], part)
            for part in plan.create:
                self.client.create(SLICES, _slice(endpoints, labels, ports, part))
            for piece_name in plan.delete:
                self.client.delete(SLICES, by_name[piece_name])

    @staticmethod
    def _subsets(service: Obj | None, endpoints: Obj | None) -> dict[str, tuple[list[Obj], list[Obj]]]:
        """Ports and endpoints by combination of ports; nothing where nothing is mirrored."""
        found: dict[str, tuple[list[Obj], list[Obj]]] = {}
        if service is None or endpoints is None or dig(service, "spec", "selector"):
            return found
        if labels_of(endpoints).get(SKIP_MIRROR) == "true" or LEADER in annotations_of(endpoints):
            return found
        for subset in endpoints.get("subsets") or ():
            ports = [{"name": "", "protocol": "TCP", **port} for port in subset.get("ports") or ()]
            _, contents = found.setdefault(ports_key(ports), (ports, []))
            contents += _mirrored(subset)[: max(0, _MIRROR_MOST - len(contents))]
        return found

    def _update(self, piece: Obj, endpoints: list[Obj]) -> None:
        self.client.modify(SLICES, namespace_of(piece), name_of(piece), lambda obj: obj.update(endpoints=endpoints))


def _mirrored(subset: Obj) -> list[Obj]:
    found: list[Obj] = []
    for key, ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in subset.get(key) or ():
            entry: Obj = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
            for extra in ("hostname", "nodeName", "targetRef"):
                if address.get(extra):
                    entry[extra] = address[extra]
            found.append(entry)
    return found
