"""The application is unchanged in its intent: its workloads, Services and storage exist and mean the same.

Why it cannot be gamed: deleting the broken workload, scaling it to zero, replacing its image by one that idles,
pointing a Service elsewhere, and replacing a volume by an empty one all differ from the baseline before the fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.grading.baseline import WORKLOADS
from srearena.conductor.oracles.checks.base import Check
from srearena.service.kubernetes import Obj

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


class Intent(Check):
    """Workloads, Services and claims of the baseline still exist and are the same."""

    name = "intent"

    def __init__(self, *, keeps_claims: bool = True) -> None:
        """`keeps_claims` is false where the stored data is lost already, so that a new claim is acceptable."""
        self._keeps_claims = keeps_claims

    def complaints(self, problem: Problem) -> list[str]:
        baseline = problem.baseline
        if baseline is None:
            return []
        complaints: list[str] = []
        namespace = problem.namespace
        for resource in WORKLOADS:
            for before in baseline.of(resource, namespace=namespace):
                now = problem.kubernetes.find(resource, before["metadata"]["name"], namespace)
                complaints += _workload(before, now)
        for before in baseline.of("services", namespace=namespace):
            complaints += _service(before, problem.kubernetes.find("services", before["metadata"]["name"], namespace))
        for before in baseline.of("persistentvolumeclaims", namespace=namespace):
            name = before["metadata"]["name"]
            now = problem.kubernetes.find("persistentvolumeclaims", name, namespace)
            if now is None:
                complaints.append(f"the claim {name} is deleted, and its data with it")
            elif self._keeps_claims and now["metadata"]["uid"] != before["metadata"]["uid"]:
                complaints.append(f"the claim {name} is a new one: its data is lost")
        return complaints


def _workload(before: Obj, now: Obj | None) -> list[str]:
    label = f"{before['kind']} {before['metadata']['name']}"
    if now is None:
        return [f"{label} is deleted"]
    complaints = []
    if before["spec"].get("replicas", 1) and now["spec"].get("replicas", 1) == 0:
        complaints.append(f"{label} is scaled to zero")
    images = {c["name"]: c.get("image", "") for c in now["spec"]["template"]["spec"]["containers"]}
    for container in before["spec"]["template"]["spec"]["containers"]:
        name = container["name"]
        if name not in images:
            complaints.append(f"{label} has lost its container {name}")
        elif _repository(images[name]) != _repository(container.get("image", "")):
            complaints.append(
                f"{label}: container {name} runs {images[name]}, another program than {container['image']}"
            )
    claims = _claims(before) - _claims(now)
    complaints += [f"{label} does not use the claim {claim} any more" for claim in sorted(claims)]
    return complaints


def _claims(workload: Obj) -> set[str]:
    volumes = workload["spec"]["template"]["spec"].get("volumes") or ()
    return {volume["persistentVolumeClaim"]["claimName"] for volume in volumes if volume.get("persistentVolumeClaim")}


def _repository(image: str) -> str:
    """The repository of an image, without tag, digest and default registry."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    name = f"{head}{slash}{last.partition(':')[0]}"
    for prefix in ("docker.io/", "library/"):
        name = name.removeprefix(prefix)
    return name


def _service(before: Obj, now: Obj | None) -> list[str]:
    label = f"Service {before['metadata']['name']}"
    if now is None:
        return [f"{label} is deleted"]
    if now["spec"].get("type") == "ExternalName" and before["spec"].get("type") != "ExternalName":
        return [f"{label} points out of the cluster"]
    ports = {(port["port"], port.get("protocol", "TCP")) for port in now["spec"].get("ports") or ()}
    missing = [
        port for port in before["spec"].get("ports") or () if (port["port"], port.get("protocol", "TCP")) not in ports
    ]
    return [f"{label} does not offer port {port['port']} any more" for port in missing]
