"""A bench for controllers: a world with all of them, nodes made by hand, and kubelets played by the test.

The played kubelets bind every pod to a node, start it after a moment and take it down when it is deleted; a test says
which pods never become ready, or does what it likes with the pods itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srearena.cluster.embedded import controllers
from srearena.cluster.embedded.client import Client
from srearena.cluster.embedded.objects import (
    Obj,
    condition,
    copy_of,
    dig,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
    with_condition,
)
from srearena.cluster.embedded.registry.admission.plugins import install
from srearena.cluster.embedded.registry.binding import bind
from srearena.cluster.embedded.registry.errors import ApiError, NotFound
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.registry.placement import matches_node_selector
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

START = 1_700_000_000.0
LEASES = "leases.coordination.k8s.io"


class Kubelets:
    """Plays the scheduler and every kubelet: pods start, become ready and end after a moment."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._addresses = 0
        self.start_seconds = 1.0
        self.stop_seconds = 1.0
        self.fails: Callable[[Obj], bool] = lambda pod: False
        """Which pods run without ever becoming ready."""
        self.idle: Callable[[Obj], bool] = lambda pod: False
        """Which pods nobody takes care of."""
        bench.world.on_change("pods", self._heard)

    def _heard(self, change: Change) -> None:
        pod = change.new
        clock = self._bench.world.clock
        if change.type == "DELETED" or self.idle(pod):
            return
        if change.type == "ADDED":
            clock.after(0.05, self._bind, key_of(pod), uid_of(pod))
        if is_terminating(pod) and (change.old is None or not is_terminating(change.old)):
            clock.after(self.stop_seconds, self._remove, key_of(pod), uid_of(pod))

    def _pod(self, key: str, uid: str) -> Obj | None:
        pod = self._bench.get("pods", key)
        return pod if pod is not None and uid_of(pod) == uid else None

    def _bind(self, key: str, uid: str) -> None:
        pod = self._pod(key, uid)
        if pod is None or is_terminating(pod):
            return
        if not dig(pod, "spec", "nodeName"):
            fitting = [node for node in self._bench.list("nodes") if matches_node_selector(pod, node)]
            if not fitting:
                return
            load = {name_of(node): 0 for node in fitting}
            for other in self._bench.list("pods"):
                if dig(other, "spec", "nodeName") in load:
                    load[other["spec"]["nodeName"]] += 1
            bind(self._bench.world.registry, namespace_of(pod), name_of(pod), min(load, key=lambda n: (load[n], n)))
        self._bench.world.clock.after(self.start_seconds, self._run, key, uid)

    def _run(self, key: str, uid: str) -> None:
        pod = self._pod(key, uid)
        if pod is not None and not is_terminating(pod):
            self._bench.run(pod, ready=not self.fails(pod))

    def _remove(self, key: str, uid: str) -> None:
        pod = self._pod(key, uid)
        if pod is not None:
            self._bench.client.delete("pods", pod, grace_seconds=0)

    def address(self) -> str:
        self._addresses += 1
        return f"10.244.{self._addresses // 250}.{self._addresses % 250 + 1}"


class Bench:
    def __init__(self, *, nodes: int = 3, kubelets: bool = True, seed: int = 1) -> None:
        self.world = World(seed=seed, start=START)
        install(self.world.registry)
        self.client: Client = self.world.client(User("admin", ("system:masters",)), "test")
        for name in ("default", "kube-system", "kube-node-lease"):
            self.create("namespaces", {"metadata": {"name": name}})
        self.world.store.add_index("pods", "node", lambda pod: (dig(pod, "spec", "nodeName", default=""),))
        self.silent_nodes: set[str] = set()
        for number in range(1, nodes + 1):
            self.node(f"node-{number}")
        self.controllers = controllers.start_all(self.world)
        self.kubelets = Kubelets(self)
        if not kubelets:
            self.kubelets.idle = lambda pod: True
        self.advance(1)

    # Acting

    def create(self, resource: str, obj: Obj) -> Obj:
        row = self.world.registry.row(resource)
        obj = {"apiVersion": row.api_version, "kind": row.kind, **copy_of(obj)}
        if row.namespaced:
            obj["metadata"].setdefault("namespace", "default")
        return self.client.create(resource, obj)

    def change(self, resource: str, key: str, **parts: Any) -> Obj:
        """Set parts of an object, named by path with double underscores: `spec__replicas=3`."""

        def change(obj: Obj) -> None:
            for path, value in parts.items():
                *way, last = path.split("__")
                here = obj
                for step in way:
                    here = here.setdefault(step, {})
                if value is None:
                    here.pop(last, None)
                else:
                    here[last] = value

        changed = self.client.modify(resource, *self._place(resource, key), change)
        assert changed is not None, f"{resource} {key} is gone"
        return changed

    def edit(self, resource: str, key: str, change: Callable[[Obj], None]) -> None:
        assert self.client.modify(resource, *self._place(resource, key), change) is not None

    def delete(self, resource: str, key: str, **options: Any) -> None:
        obj = self.get(resource, key)
        assert obj is not None, f"{resource} {key} is gone"
        self.client.delete(resource, obj, **options)

    def advance(self, seconds: float) -> None:
        self.world.clock.advance(seconds)

    def node(self, name: str, taints: list[Obj] | None = None, **labels: str) -> None:
        names = {"kubernetes.io/hostname": name, **{key.replace("__", "/"): value for key, value in labels.items()}}
        node: Obj = {"metadata": {"name": name, "labels": names}, "spec": {"taints": taints} if taints else {}}
        node_object = self.create("nodes", node)
        self.set_ready(node_object, "True")
        lease = {"metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": {"holderIdentity": name}}
        self.create(LEASES, lease)
        self._beat(name)

    def set_ready(self, node: Obj, status: str) -> None:
        now = self.world.clock.timestamp()
        ready = {"type": "Ready", "status": status, "reason": "KubeletReady", "message": "", "lastHeartbeatTime": now}
        rest = [{"type": kind, "status": "False"} for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")]
        conditions: list[Obj] = []
        for new in (*rest, ready):
            conditions = with_condition(conditions, new, now)
        state = {**(node.get("status") or {}), "conditions": conditions, "allocatable": {"pods": "110"}}
        self.client.set_status("nodes", node, state)

    def _beat(self, name: str) -> None:
        """Renew the node's lease every ten seconds, unless the test made the node fall silent."""
        if self.get("nodes", name) is None:
            return
        if name not in self.silent_nodes:
            moment = self.world.clock.micro_timestamp()
            self.change(LEASES, f"kube-node-lease/{name}", spec__renewTime=moment)
        self.world.clock.after(10, self._beat, name)

    def run(self, pod: Obj, *, ready: bool = True) -> None:
        now = self.world.clock.timestamp()
        address = dig(pod, "status", "podIP") or self.kubelets.address()
        status: Obj = {**(pod.get("status") or {}), "phase": "Running", "podIP": address, "startTime": now}
        status["podIPs"] = [{"ip": address}]
        new = {"type": "Ready", "status": "True" if ready else "False"}
        status["conditions"] = with_condition(status.get("conditions") or (), new, now)
        self.client.set_status("pods", self._fresh(pod), status)

    def finish(self, pod: Obj, phase: str, *, exit_code: int = 0, **status: Any) -> None:
        """Let all containers of a pod end."""
        now = self.world.clock.timestamp()
        names = [container["name"] for container in pod["spec"]["containers"]]
        ended = [{"name": n, "state": {"terminated": {"exitCode": exit_code, "finishedAt": now}}} for n in names]
        state = {**(pod.get("status") or {}), "phase": phase, "containerStatuses": ended, **status}
        ready = {"type": "Ready", "status": "False"}
        state["conditions"] = with_condition(state.get("conditions") or (), ready, now)
        self.client.set_status("pods", self._fresh(pod), state)

    def _fresh(self, obj: Obj) -> Obj:
        found = self.get("pods", key_of(obj))
        if found is None:
            raise NotFound("pods", name_of(obj))
        return found

    # Looking

    def _place(self, resource: str, key: str) -> tuple[str, str]:
        namespace, slash, name = key.rpartition("/")
        if not slash and self.world.registry.row(resource).namespaced:
            namespace = "default"
        return namespace, name

    def get(self, resource: str, key: str) -> Obj | None:
        return self.client.get(resource, *self._place(resource, key))

    def the(self, resource: str, key: str) -> Obj:
        found = self.get(resource, key)
        assert found is not None, f"{resource} {key} is gone"
        return found

    def list(self, resource: str, namespace: str = "", **labels: str) -> list[Obj]:
        found = self.world.store.objects(resource, namespace)
        return [obj for obj in found if labels.items() <= labels_of(obj).items()]

    def pods(self, **labels: str) -> list[Obj]:
        return self.list("pods", "default", **labels)

    def events(self, resource: str, key: str) -> list[tuple[str, str, str]]:
        """(type, reason, message) of what was said about an object, in the order it was first said."""
        namespace, name = self._place(resource, key)
        kind = self.world.registry.row(resource).kind
        events = [
            event
            for event in self.world.store.objects("events", namespace or "default")
            if (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == (kind, name)
        ]
        events.sort(key=lambda event: int(event["metadata"]["name"].rpartition(".")[2], 16))
        return [(event["type"], event["reason"], event["message"]) for event in events]

    def sources(self, reason: str) -> set[str]:
        """Who said something for that reason."""
        found = self.world.store.objects("events")
        return {event["source"]["component"] for event in found if event["reason"] == reason}

    def condition(self, resource: str, key: str, kind: str) -> tuple[str, str, str] | None:
        """(status, reason, message) of a condition."""
        found = condition(self.the(resource, key), kind)
        return (found["status"], found.get("reason", ""), found.get("message", "")) if found is not None else None


def template(*, labels: dict[str, str] | None = None, image: str = "nginx:1.25", **spec: Any) -> Obj:
    container: Obj = {"name": "main", "image": image}
    if "resources" in spec:
        container["resources"] = spec.pop("resources")
    if "ports" in spec:
        container["ports"] = spec.pop("ports")
    return {"metadata": {"labels": labels or {"app": "web"}}, "spec": {"containers": [container], **spec}}


def workload(name: str = "web", **spec: Any) -> Obj:
    """The common shape of a Deployment, ReplicaSet, StatefulSet or DaemonSet."""
    labels = {"app": name}
    shape = {"selector": {"matchLabels": labels}, "template": template(labels=labels), **spec}
    return {"metadata": {"name": name}, "spec": shape}


__all__ = ["START", "ApiError", "Bench", "Kubelets", "template", "workload"]
