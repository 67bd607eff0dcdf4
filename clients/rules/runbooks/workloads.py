"""Workloads that are scaled to nothing, cannot start, crash, or fail their probes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from clients.rules import commands
from clients.rules.changes import suspicious_revision
from clients.rules.hypotheses import Hypothesis, Repair, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, containers_of, name_of, path_of, template_of

IMAGE_ERRORS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")


@runbook
def scaled_to_nothing(system: System) -> Iterator[Hypothesis]:
    for workload in system.workloads:
        before = system.first.workload(name_of(workload)) if system.first is not None else None
        if before is not None and system.desired(before):
            continue  # the agent's own repair
        if workload["kind"] != "DaemonSet" and system.desired(workload) == 0:
            scalers = [
                one
                for one in system.own("horizontalpodautoscalers")
                if one["spec"]["scaleTargetRef"]["name"] == name_of(workload)
            ]
            replicas = max([1, *(int(one["spec"].get("minReplicas") or 1) for one in scalers)])
            yield Hypothesis(
                path_of(workload),
                "it is scaled to nothing",
                Strength.CONFIRMED,
                [commands.scale(workload, replicas)],
                kind="Operation Error",
            )


def waiting_reasons(pod: Obj) -> Iterator[tuple[str, str, str]]:
    """Container, reason and message of each container of a pod that waits or has ended badly."""
    status = pod.get("status") or {}
    for one in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        for key in ("state", "lastState"):
            for what in ("waiting", "terminated"):
                state = (one.get(key) or {}).get(what)
                if state and state.get("reason") not in (None, "Completed", "PodInitializing"):
                    yield str(one["name"]), str(state["reason"]), str(state.get("message") or "")


@runbook
def changed_and_not_ready(system: System) -> Iterator[Hypothesis]:
    """Pods are not ready, and the last revision changed something that can be the reason: it is taken back."""
    for workload in system.workloads:
        if workload["kind"] != "Deployment" or not system.unready(workload) or not system.desired(workload):
            continue
        revision = suspicious_revision(system, workload)
        if revision is None or not system.preceded_trouble(revision.at):
            continue
        yield Hypothesis(
            path_of(workload),
            f"its pods are not ready since its revision changed {'; '.join(map(str, revision.differences))}"[:400],
            Strength.CONFIRMED,
            [commands.revert(workload, revision.differences), *_room(system, workload)],
        )


def _room(system: System, workload: Obj) -> list[Repair]:
    """Fewer replicas than nodes, where each keeps the others off its node: a new pod needs a free one."""
    affinity = (template_of(workload)["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    nodes = len([node for node in system.all("nodes") if not node["spec"].get("taints")])
    if not affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or system.desired(workload) <= nodes:
        return []
    return [commands.scale(workload, max(nodes - 1, 1))]


@runbook
def image_cannot_be_pulled(system: System) -> Iterator[Hypothesis]:
    for workload in system.workloads:
        for pod in system.pods_of(name_of(workload)):
            bad = [c for c, reason, _ in waiting_reasons(pod) if reason in IMAGE_ERRORS]
            if not bad:
                continue
            yield Hypothesis(
                path_of(workload),
                f"the image of {bad[0]} cannot be pulled",
                Strength.CONFIRMED,
                _reverted(system, workload) or _sibling_image(system, workload, bad[0]),
            )
            break


def _reverted(system: System, workload: Obj) -> list[Repair]:
    revision = suspicious_revision(system, workload) if workload["kind"] == "Deployment" else None
    return [commands.revert(workload, revision.differences)] if revision else []


def _sibling_image(system: System, workload: Obj, container: str) -> list[Repair]:
    """The image that another workload runs from the same repository, where the tag differs."""
    for index, one in enumerate(containers_of(workload)):
        if one["name"] != container:
            continue
        repository = str(one["image"]).partition("@")[0].rpartition(":")[0]
        for other in system.workloads:
            for sibling in containers_of(other):
                if sibling["image"] != one["image"] and str(sibling["image"]).startswith(f"{repository}:"):
                    path = ("spec", "template", "spec", "containers", index, "image")
                    return [commands.patch(workload, [(path, sibling["image"])])]
    return []


@runbook
def pod_differs_from_template(system: System) -> Iterator[Hypothesis]:
    """A pod was edited in place: it runs another image than its workload declares. A new pod is right again."""
    for workload in system.workloads:
        declared = {str(c["name"]): str(c["image"]) for c in containers_of(workload)}
        current = str(max((one["metadata"]["creationTimestamp"] for one in system.revisions(workload)), default=""))
        for pod in system.pods_of(name_of(workload)):
            if str(pod["metadata"]["creationTimestamp"]) < current:
                continue
            for one in pod["spec"]["containers"]:
                image = declared.get(str(one["name"]))
                if image is not None and image != one["image"]:
                    yield Hypothesis(
                        path_of(workload),
                        f"its pod runs the image {one['image']}, and {image} is declared",
                        Strength.CONFIRMED,
                        [commands.delete(pod)],
                        kind="Operation Error",
                    )


@runbook
def probe_fails(system: System) -> Iterator[Hypothesis]:
    """The kubelet reports failing probes of a container that otherwise runs, and history has no better probe."""
    for about, reason, message in system.warnings():
        match = re.match(r"(Readiness|Liveness|Startup) probe (failed|errored)", message)
        workload = system.workload(system.owner_of(str(about.get("name")))) if reason == "Unhealthy" and match else None
        if match is None or workload is None or not _alive(system, about, workload):
            continue
        probe = f"{match[1].lower()}Probe"
        crash = any("CrashLoop" in r for p in system.pods_of(name_of(workload)) for _, r, _ in waiting_reasons(p))
        if not system.unready(workload) and not crash and not _restarts(system, workload):
            continue
        repairs = _reverted(system, workload)
        for index, one in enumerate(containers_of(workload)):
            if one.get(probe) and not repairs:
                path = ("spec", "template", "spec", "containers", index, probe)
                better = _better_probe(one, one[probe], containers_of(workload))
                repairs = [commands.patch(workload, [(path, better)])]
        if repairs:
            yield Hypothesis(
                path_of(workload),
                f"its {match[1].lower()} probe fails: {message[:160]}",
                Strength.CONFIRMED if _reverted(system, workload) else Strength.LIKELY,
                repairs,
            )


def _alive(system: System, about: Obj, workload: Obj) -> bool:
    return any(name_of(pod) == about.get("name") for pod in system.pods_of(name_of(workload)))


def _restarts(system: System, workload: Obj) -> int:
    return sum(
        int(one.get("restartCount") or 0)
        for pod in system.pods_of(name_of(workload))
        for one in (pod.get("status") or {}).get("containerStatuses") or ()
    )


def _better_probe(container: Obj, probe: Obj, containers: list[Obj]) -> Any:
    """A probe that asks whether the declared port accepts connections, patiently; None where no port is declared."""
    ports = [int(p["containerPort"]) for p in container.get("ports") or ()]
    if not ports:
        return None
    return {
        "tcpSocket": {"port": ports[0]},
        "initialDelaySeconds": max(10, int(probe.get("initialDelaySeconds") or 0)),
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": 6,
    }


@runbook
def foreign_name_server(system: System) -> Iterator[Hypothesis]:
    """Pods that do not ask the cluster's DNS cannot find Services by name."""
    for workload in system.workloads:
        spec = template_of(workload)["spec"]
        policy = spec.get("dnsPolicy", "ClusterFirst")
        if spec.get("hostNetwork") or policy not in ("None", "Default"):
            continue
        base = ("spec", "template", "spec")
        yield Hypothesis(
            path_of(workload),
            f"its pods ask a name server outside the cluster (dnsPolicy {policy})",
            Strength.CONFIRMED,
            [commands.patch(workload, [((*base, "dnsPolicy"), "ClusterFirst"), ((*base, "dnsConfig"), None)])],
        )


@runbook
def killed_for_memory(system: System) -> Iterator[Hypothesis]:
    """The kernel kills a container at its limit: the limit is too low for the program."""
    for workload in system.workloads:
        for pod in system.pods_of(name_of(workload)):
            killed = [c for c, reason, _ in waiting_reasons(pod) if reason == "OOMKilled"]
            if not killed:
                continue
            repairs = _reverted(system, workload)
            for index, one in enumerate(containers_of(workload)):
                limit = ((one.get("resources") or {}).get("limits") or {}).get("memory")
                if one["name"] == killed[0] and limit and not repairs:
                    path = ("spec", "template", "spec", "containers", index, "resources", "limits", "memory")
                    repairs = [commands.patch(workload, [(path, f"{4 * _mebibytes(str(limit))}Mi")])]
            yield Hypothesis(path_of(workload), f"{killed[0]} is killed at its memory limit", Strength.LIKELY, repairs)
            break


def _mebibytes(quantity: str) -> int:
    match = re.match(r"(\d+(?:\.\d+)?)([A-Za-z]*)", quantity)
    if match is None:
        return 128
    factor = {"": 1 / 2**20, "k": 1e3 / 2**20, "M": 1e6 / 2**20, "G": 1e9 / 2**20, "Ki": 1 / 1024, "Mi": 1, "Gi": 1024}
    return max(16, round(float(match[1]) * factor.get(match[2], 1)))


@runbook
def not_ready(system: System) -> Iterator[Hypothesis]:
    """Pods are not ready and nothing tells why."""
    for workload in system.workloads:
        if system.desired(workload) and system.unready(workload):
            reasons = {r for pod in system.pods_of(name_of(workload)) for _, r, _ in waiting_reasons(pod)}
            yield Hypothesis(
                path_of(workload),
                f"it is not ready ({', '.join(sorted(reasons)) or 'no reason is reported'})",
                Strength.SYMPTOM,
                [commands.restart(workload)],
                fails_by_itself="CrashLoopBackOff" in reasons,
            )
