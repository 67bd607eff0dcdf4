"""The application is still the application: its workloads, Services and storage are there and mean the same.

Why it cannot be gamed: deleting what is broken, scaling it to nothing, swapping its image for one that idles, pointing
a Service elsewhere, or replacing a volume by an empty one are all departures from the baseline taken before the fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.grading.baseline import WORKLOADS
from srearena.conductor.oracles.checks.base import Check
from srearena.service.kubernetes import Obj

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


class Intent(Check):
    name = "intent"

    def __init__(self, *, keeps_claims: bool = True) -> None:
        """`keeps_claims` is false where what was stored is lost already, and a new claim is as good as the old one."""
        self._keeps_claims = keeps_claims

    def complaints(self, problem: Problem) -> list[str]:
        baseline = problem.baseline
        if baseline is None:
            return []
        found: list[str] = []
        namespace = problem.namespace
        for resource in WORKLOADS:
            for before in baseline.of(resource, namespace=namespace):
                now = problem.kubernetes.find(resource, before["metadata"]["name"], namespace)
                found += _workload(before, now)
        for before in baseline.of("services", namespace=namespace):
            found += _service(before, problem.kubernetes.find("services", before["metadata"]["name"], namespace))
        for before in baseline.of("persistentvolumeclaims", namespace=namespace):
            name = before["metadata"]["name"]
            now = problem.kubernetes.find("persistentvolumeclaims", name, namespace)
            if now is None:
                found.append(f"the claim {name} is gone, and with it what was stored there")
            elif self._keeps_claims and now["metadata"]["uid"] != before["metadata"]["uid"]:
                found.append(f"the claim {name} is not the one it was: what was stored there is lost")
        return found


def _workload(before: Obj, now: Obj | None) -> list[str]:
    what = f"{before['kind']} {before['metadata']['name']}"
    if now is None:
        return [f"{what} is gone"]
    found = []
    if before["spec"].get("replicas", 1) and now["spec"].get("replicas", 1) == 0:
        found.append(f"{what} is scaled to nothing")
    images = {c["name"]: c.get("image", "") for c in now["spec"]["template"]["spec"]["containers"]}
    for container in before["spec"]["template"]["spec"]["containers"]:
        name = container["name"]
        if name not in images:
            found.append(f"{what} has lost its container {name}")
        elif _repository(images[name]) != _repository(container.get("image", "")):
            found.append(f"{what}: container {name} runs {images[name]}, another program than {container['image']}")
    claims = _claims(before) - _claims(now)
    found += [f"{what} does not use the claim {claim} any more" for claim in sorted(claims)]
    return found


def _claims(workload: Obj) -> set[str]:
    volumes = workload["spec"]["template"]["spec"].get("volumes") or ()
    return {volume["persistentVolumeClaim"]["claimName"] for volume in volumes if volume.get("persistentVolumeClaim")}


def _repository(image: str) -> str:
    """An image without its tag or digest, and without the registry that is meant when none is named."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    name = f"{head}{slash}{last.partition(':')[0]}"
    for prefix in ("docker.io/", "library/"):
        name = name.removeprefix(prefix)
    return name


def _service(before: Obj, now: Obj | None) -> list[str]:
    what = f"Service {before['metadata']['name']}"
    if now is None:
        return [f"{what} is gone"]
    if now["spec"].get("type") == "ExternalName" and before["spec"].get("type") != "ExternalName":
        return [f"{what} leads out of the cluster now"]
    ports = {(port["port"], port.get("protocol", "TCP")) for port in now["spec"].get("ports") or ()}
    missing = [
        port for port in before["spec"].get("ports") or () if (port["port"], port.get("protocol", "TCP")) not in ports
    ]
    return [f"{what} does not offer port {port['port']} any more" for port in missing]
