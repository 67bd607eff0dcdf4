"""The application is unchanged in its intent: its workloads, Services and storage exist and mean the same.

The rule: what a program is (image, command, arguments, init containers, the volumes of its data, the Services it calls)
and its place behind its Services are its identity; how it is scheduled, probed and supplied is not. An object that was
made anew is as good as the old one, an equal workload of another kind too. `program_identity` has the details.

Why it cannot be gamed: deleting the broken workload, scaling it to zero, replacing its program by one that idles or
answers "ok", pointing a Service or a dependency elsewhere, listing a claim without mounting it, and going back to a
revision from before the healthy one all differ from the baseline, which was captured before the agent came.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from srearena.conductor.grading.baseline import WORKLOADS, Baseline, capture, intent_of
from srearena.conductor.grading.images import same_program
from srearena.conductor.grading.pod_templates import Templates, containers, pod_labels, pod_spec, references
from srearena.conductor.grading.program_identity import Addresses, address_complaints, template_complaints
from srearena.conductor.oracles.checks.base import Check
from srearena.service.kubernetes import Kubernetes, Obj

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_SYSTEM = "kube-system"
_RESOURCES = (
    *WORKLOADS,
    "services",
    "configmaps",
    "secrets",
    "persistentvolumeclaims",
    "persistentvolumes",
    "ingresses.networking.k8s.io",
    "networkpolicies.networking.k8s.io",
    "cronjobs.batch",
)


class Intent(Check):
    """Workloads, Services and claims of the baseline still exist and are the same."""

    name = "intent"

    def record_baseline(self, problem: Problem) -> dict[str, Any]:
        """The earlier revisions of each Deployment: going back to one of them is no repair."""
        return {namespace: _earlier_revisions(problem.kubernetes, namespace) for namespace in problem.app.namespaces}

    def complaints(self, problem: Problem) -> list[str]:
        baseline = problem.baseline
        if baseline is None:
            return []
        now = capture(problem.kubernetes, problem.app.namespaces, _RESOURCES)
        earlier: dict[str, dict[str, list[Obj]]] = self.baseline_value(problem) or {}
        complaints: list[str] = []
        at_fault = {(member.namespace, member.name) for origin in problem.origins for member in origin.members}
        for namespace in problem.app.namespaces:
            services = {obj["metadata"]["name"]: obj for obj in now.of("services", namespace=namespace)}
            known = {obj["metadata"]["name"]: obj for obj in baseline.of("services", namespace=namespace)}
            ips = {name: str(obj["spec"].get("clusterIP", "")) for name, obj in services.items()}
            addresses = Addresses(known, ips, namespace)
            for before in baseline.of(*WORKLOADS, namespace=namespace):
                name = before["metadata"]["name"]
                revisions = (earlier.get(namespace) or {}).get(name, [])
                complaints += _workload(before, baseline, now, addresses, revisions, (namespace, name) in at_fault)
            for name, service in known.items():
                complaints += _service(service, services.get(name))
            complaints += _claims(problem, baseline, now, namespace)
            complaints += _ingresses(known, now, namespace)
            complaints += _cut_off(problem, baseline, now, namespace)
            for before in baseline.of("cronjobs.batch", namespace=namespace):
                complaints += _scheduled(before, now.get("cronjobs.batch", before["metadata"]["name"], namespace))
        return [*complaints, *_hijacks(baseline, now), *_platform(baseline, now)]


def current_workload(state: Baseline, before: Obj) -> Obj | None:
    """The workload that is now in the place of another: of the same name, and of any kind."""
    name, namespace = before["metadata"]["name"], before["metadata"].get("namespace", "")
    found = [obj for resource in WORKLOADS if (obj := state.get(resource, name, namespace)) is not None]
    return next((obj for obj in found if obj["kind"] == before["kind"]), found[0] if found else None)


def _workload(
    before: Obj, baseline: Baseline, state: Baseline, addresses: Addresses, earlier: list[Obj], at_fault: bool
) -> Iterator[str]:
    label = f"{before['kind']} {before['metadata']['name']}"
    now = current_workload(state, before)
    if now is None:
        yield f"{label} is deleted"
        return
    if before["spec"].get("replicas", 1) and now["spec"].get("replicas", 1) == 0:
        yield f"{label} is scaled to zero"
    old, new = Templates(baseline).resolved(before), Templates(state, baseline).resolved(now)
    yield from template_complaints(label, old, new, addresses, at_fault=at_fault)
    old_settings, new_settings = Templates(baseline).settings(before), Templates(state).settings(now)
    yield from address_complaints(label, old_settings, new_settings, addresses)
    if pod_spec(now) != pod_spec(before) and _template(now) in earlier:
        yield f"{label} is back at a revision from before the healthy one"


def _earlier_revisions(api: Kubernetes, namespace: str) -> dict[str, list[Obj]]:
    """The templates of the revisions before the current one, by Deployment."""
    deployments = {obj["metadata"]["uid"]: obj for obj in api.list("deployments", namespace)}
    found: dict[str, list[Obj]] = {}
    for replica_set in api.list("replicasets", namespace):
        for owner in replica_set["metadata"].get("ownerReferences") or ():
            deployment = deployments.get(owner.get("uid"))
            if deployment is not None and _template(replica_set) != _template(deployment):
                found.setdefault(deployment["metadata"]["name"], []).append(_template(replica_set))
    return found


def _template(workload: Obj) -> Obj:
    """The pod template without what controllers and restarts add to it."""
    template: Obj = intent_of(workload)["spec"]["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    return {
        "labels": {key: value for key, value in labels.items() if key != "pod-template-hash"},
        "spec": template.get("spec") or {},
    }


def _service(before: Obj, now: Obj | None) -> Iterator[str]:
    label = f"Service {before['metadata']['name']}"
    if now is None:
        yield f"{label} is deleted"
        return
    if now["spec"].get("type") == "ExternalName" and before["spec"].get("type") != "ExternalName":
        yield f"{label} points out of the cluster"
        return
    ports = {(port["port"], port.get("protocol", "TCP")) for port in now["spec"].get("ports") or ()}
    for port in before["spec"].get("ports") or ():
        if (port["port"], port.get("protocol", "TCP")) not in ports:
            yield f"{label} does not offer port {port['port']} any more"


def _claims(problem: Problem, baseline: Baseline, now: Baseline, namespace: str) -> Iterator[str]:
    """Claims keep their volume: a claim that was made anew on the same volume has the same data."""
    lost = _lost_claims(problem, baseline, namespace)
    for before in baseline.of("persistentvolumeclaims", namespace=namespace):
        name, volume = before["metadata"]["name"], before["spec"].get("volumeName", "")
        claim = now.get("persistentvolumeclaims", name, namespace)
        if claim is None:
            yield f"the claim {name} is deleted, and its data with it"
        elif name not in lost and volume:
            old, new = (state.get("persistentvolumes", volume) for state in (baseline, now))
            if claim["spec"].get("volumeName") != volume or new is None or _uid(old) != _uid(new):
                yield f"the claim {name} has another volume: its data is lost"


def _lost_claims(problem: Problem, baseline: Baseline, namespace: str) -> set[str]:
    """The claims whose data the fault destroyed, or whose volume it took away, so that a repair cannot keep it."""
    handed_over = problem.handed_over
    lost = {
        before["metadata"]["name"]
        for before in baseline.of("persistentvolumeclaims", namespace=namespace)
        if handed_over is not None and not _keeps_volume(before, handed_over, namespace)
    }
    if problem.data_is_lost:
        for workload in baseline.of(*WORKLOADS, namespace=namespace):
            if workload["metadata"]["name"] in problem.faulty_services:
                needed = references(pod_spec(workload))
                lost |= {name for resource, name in needed if resource == "persistentvolumeclaims"}
    return lost


def _keeps_volume(before: Obj, state: Baseline, namespace: str) -> bool:
    claim = state.get("persistentvolumeclaims", before["metadata"]["name"], namespace)
    volume = before["spec"].get("volumeName", "")
    return claim is not None and claim["spec"].get("volumeName", "") == volume


def _uid(obj: Obj | None) -> str:
    return str(obj["metadata"].get("uid", "")) if obj is not None else ""


def _ingresses(services: dict[str, Obj], now: Baseline, namespace: str) -> Iterator[str]:
    """Ingresses lead to Services of the application."""
    for ingress in now.of("ingresses.networking.k8s.io", namespace=namespace):
        spec = ingress["spec"]
        backends = [spec.get("defaultBackend") or {}]
        for rule in spec.get("rules") or ():
            backends += [path.get("backend") or {} for path in (rule.get("http") or {}).get("paths") or ()]
        for name in {str((backend.get("service") or {}).get("name", "")) for backend in backends} - {""}:
            if services and name not in services:
                yield f"Ingress {ingress['metadata']['name']} leads to {name}, which is not of the application"


def _cut_off(problem: Problem, baseline: Baseline, now: Baseline, namespace: str) -> Iterator[str]:
    """Policies of the agent that isolate a program: a call that is cut off hides what it would have done.

    A policy beside a wrong one can be a repair, where policies are the root.
    """
    if any(entity.kind == "NetworkPolicy" for origin in problem.origins for entity in origin.changed):
        return
    for policy in now.of("networkpolicies.networking.k8s.io", namespace=namespace):
        key = ("networkpolicies.networking.k8s.io", namespace, policy["metadata"]["name"])
        known = [state.objects[key] for state in (baseline, problem.handed_over) if state and key in state.objects]
        if any(intent_of(earlier) == intent_of(policy) for earlier in known):
            continue
        selector = policy["spec"].get("podSelector") or {}
        for workload in baseline.of(*WORKLOADS, namespace=namespace):
            if _matches(selector, pod_labels(workload)):
                yield f"NetworkPolicy {key[2]} isolates {workload['metadata']['name']}, and was not there before"
                break


def _matches(selector: Obj, labels: dict[str, str]) -> bool:
    """Whether a label selector can match; expressions other than equality are taken to match."""
    return (selector.get("matchLabels") or {}).items() <= labels.items()


def _scheduled(before: Obj, now: Obj | None) -> Iterator[str]:
    """A CronJob runs the same programs; a sidecar may become an init container."""
    label = f"CronJob {before['metadata']['name']}"
    if now is None:
        return  # collateral, unless it was the root
    current = {container["name"]: container for _, container in containers(pod_spec(now))}
    for _, container in containers(pod_spec(before)):
        found = current.get(container["name"])
        if found is None:
            yield f"{label} has lost its container {container['name']}"
        elif any((found.get(field) or None) != (container.get(field) or None) for field in ("command", "args")):
            yield f"{label}: container {container['name']} has another command than declared"
        elif not same_program(str(found.get("image")), str(container.get("image"))):
            yield f"{label}: container {container['name']} runs {found.get('image')}, another program"


def _hijacks(baseline: Baseline, now: Baseline) -> Iterator[str]:
    """Addresses that a Service claims as its own."""
    known = {ip for service in baseline.of("services") for ip in service["spec"].get("externalIPs") or ()}
    for service in now.of("services"):
        for ip in service["spec"].get("externalIPs") or ():
            if ip not in known:
                yield f"Service {service['metadata']['name']} takes over the address {ip}"


def _platform(baseline: Baseline, now: Baseline) -> Iterator[str]:
    """The components of the platform run the same programs; their arguments may be part of a repair."""
    for before in baseline.of(*WORKLOADS, namespace=_SYSTEM):
        workload = current_workload(now, before)
        if workload is None:
            continue  # the platform check complains
        old, new = (Templates(state).resolved(obj) for state, obj in ((baseline, before), (now, workload)))
        for complaint in template_complaints("", _image_only(old), _image_only(new), Addresses((), {})):
            yield f"{before['kind']} {before['metadata']['name']} of the platform{complaint}"


def _image_only(template: Obj) -> Obj:
    return {
        group: {
            name: {"image": container.get("image"), "command": container.get("command"), "mounts": {}, "env": {}}
            for name, container in (template.get(group) or {}).items()
        }
        for group in ("containers", "initContainers")
    }
