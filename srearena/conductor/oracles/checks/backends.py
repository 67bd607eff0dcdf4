"""Every Service leads to the pods of the workloads that it led to before the fault, and these run what is declared.

A connection that is accepted says little if the agent chose who accepts it. This check covers the ways from a Service
to other servers: endpoints written by hand, a selector that selects other pods, pods that only carry the right labels
or the right owner reference, a rewritten pod of the right workload, an image exchanged on the node, and the Service's
own address taken over by another Service. The workloads' own templates are the subject of `intent`, and names in DNS
that of `reachability`.

Why it cannot be gamed: endpoints count by the address of an existing pod; a pod belongs to a workload only where the
owner exists with the UID in the reference and selects the pod, and the Service must select it too; its containers are
compared with that workload's template, and the digests of their images with those of the healthy system.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypedDict

from srearena.conductor.grading.baseline import WORKLOADS
from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.probe_integrity import images_run
from srearena.service.kubernetes import Kubernetes, Obj

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_REPLICA_SETS = "replicasets.apps"
_SLICES = "endpointslices.discovery.k8s.io"
_COMPARED = ("image", "command", "args")


class _Facts(TypedDict):
    workloads: dict[str, list[str]]
    """The workloads behind each Service, by `namespace/name`."""
    images: dict[str, str]
    injected: list[str]
    """The containers that the platform adds to pods or changes in them, as `workload/container`."""


class Backends(Check):
    """The endpoints of every Service are pods of its workloads, as their templates describe them."""

    name = "backends"

    def record_baseline(self, problem: Problem) -> _Facts:
        facts: _Facts = {"workloads": {}, "images": {}, "injected": []}
        for namespace in problem.app.namespaces:
            state = NamespaceState(problem.kubernetes, namespace)
            for service in state.services:
                behind = {state.workload_name(pod) for _, pod in state.endpoints(service) if pod is not None}
                if behind and "" not in behind:
                    facts["workloads"][f"{namespace}/{service}"] = sorted(behind)
            for pod in state.pods.values():
                facts["images"].update(images_run(pod))
                facts["injected"] += [f"{state.workload_name(pod)}/{name}" for name in state.foreign_containers(pod)]
        return facts

    def complaints(self, problem: Problem) -> list[str]:
        facts: _Facts | None = self.baseline_value(problem)
        if facts is None:
            return []
        found = _taken_addresses(problem.kubernetes, problem.app.namespaces)
        states = {namespace: NamespaceState(problem.kubernetes, namespace) for namespace in problem.app.namespaces}
        for key, expected in facts["workloads"].items():
            namespace, _, service = key.partition("/")
            state = states[namespace]
            for address, pod in state.endpoints(service):
                if pod is None:
                    found.append(f"the endpoint {address} of Service {service} is not the address of a pod")
                elif (name := state.workload_name(pod)) not in expected:
                    owner = f"a pod of {name}" if name else "a pod of no workload"
                    found.append(
                        f"Service {service} leads to {pod['metadata']['name']}, {owner}, not of {', '.join(expected)}"
                    )
                elif not state.selects(service, pod):
                    found.append(f"Service {service} does not select its endpoint {pod['metadata']['name']}")
                else:
                    found += _changes(state, pod, facts)
        for state in states.values():
            for pod in state.pods.values():
                if state.workload(pod) is not None and not pod["metadata"].get("deletionTimestamp"):
                    found += _changes(state, pod, facts)  # also of workloads that no Service leads to
        return list(dict.fromkeys(found))


class NamespaceState:
    """The Services, endpoints, pods and owners of a namespace at one moment."""

    def __init__(self, api: Kubernetes, namespace: str) -> None:
        self._selectors: dict[str, Obj] = {
            obj["metadata"]["name"]: obj["spec"].get("selector") or {} for obj in api.list("services", namespace)
        }
        self.pods = {obj["metadata"]["name"]: obj for obj in api.list("pods", namespace)}
        self._slices = api.list(_SLICES, namespace)
        owners = [obj for resource in (*WORKLOADS, _REPLICA_SETS) for obj in api.list(resource, namespace)]
        self._owners: dict[str, Obj] = {obj["metadata"]["uid"]: obj for obj in owners}

    @property
    def services(self) -> Iterable[str]:
        return self._selectors

    def selects(self, service: str, pod: Obj) -> bool:
        """Whether a Service selects a pod now; a Service without a selector selects none."""
        selector = self._selectors.get(service) or {}
        return bool(selector) and selector.items() <= (pod["metadata"].get("labels") or {}).items()

    def endpoints(self, service: str) -> Iterator[tuple[str, Obj | None]]:
        """The addresses to which a Service sends connections, each with its pod, if it is one."""
        for endpoints in self._slices:
            if (endpoints["metadata"].get("labels") or {}).get("kubernetes.io/service-name") != service:
                continue
            for endpoint in endpoints.get("endpoints") or ():
                if (endpoint.get("conditions") or {}).get("ready") is False:
                    continue
                pod = self.pods.get((endpoint.get("targetRef") or {}).get("name", ""))
                for address in endpoint.get("addresses") or ():
                    yield address, pod if pod is not None and address in _addresses(pod) else None

    def workload(self, pod: Obj) -> Obj | None:
        """The workload that controls a pod."""
        obj, found = pod, None
        while (owner := self._controller(obj)) is not None:
            labels = obj["metadata"].get("labels") or {}
            selector = (owner["spec"].get("selector") or {}).get("matchLabels") or {}
            if not selector.items() <= labels.items():
                return None
            obj = found = owner
        return found

    def _controller(self, obj: Obj) -> Obj | None:
        for reference in obj["metadata"].get("ownerReferences") or ():
            if reference.get("controller"):
                return self._owners.get(reference.get("uid", ""))
        return None

    def workload_name(self, pod: Obj) -> str:
        workload = self.workload(pod)
        return str(workload["metadata"]["name"]) if workload is not None else ""

    def foreign_containers(self, pod: Obj) -> list[str]:
        """The containers in which a pod differs from its workload's template.

        Ephemeral containers are left out: `kubectl debug` adds them, and they cannot take a port from the application.
        """
        workload = self.workload(pod)
        declared = _containers(workload["spec"]["template"]["spec"]) if workload is not None else {}
        running = _containers(pod["spec"])
        return [name for name in declared | running if declared.get(name) != running.get(name)]


def _addresses(pod: Obj) -> set[str]:
    return {str(entry.get("ip")) for entry in (pod.get("status") or {}).get("podIPs") or ()}


def _containers(spec: Obj) -> dict[str, Any]:
    return {
        container["name"]: {key: container.get(key) for key in _COMPARED if container.get(key)}
        for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    }


def _changes(state: NamespaceState, pod: Obj, facts: _Facts) -> list[str]:
    """How a pod differs from its workload's template and from the healthy system's images."""
    workload = state.workload(pod)
    assert workload is not None
    label, name = f"pod {pod['metadata']['name']}", workload["metadata"]["name"]
    found = [
        f"{label}: container {container} is not as {name} declares it"
        for container in state.foreign_containers(pod)
        if f"{name}/{container}" not in facts["injected"]
    ]
    for image, digest in images_run(pod).items():
        if facts["images"].get(image, digest) != digest:
            found.append(f"{label}: {image} is another image than before, {digest}")
    return found


def _taken_addresses(api: Kubernetes, namespaces: tuple[str, ...]) -> list[str]:
    """Services that claim the cluster address of one of the application's."""
    services = api.list("services")
    own = {
        address: service["metadata"]["name"]
        for service in services
        if service["metadata"]["namespace"] in namespaces
        for address in service["spec"].get("clusterIPs") or ()
    }
    return [
        f"Service {service['metadata']['name']} takes over {address}, the address of Service {own[address]}"
        for service in services
        for address in service["spec"].get("externalIPs") or ()
        if address in own
    ]
