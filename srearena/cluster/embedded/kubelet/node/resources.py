"""CPU shares of containers when the machine is contended, and the choice of the OOM victim."""

from __future__ import annotations

from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox
from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.machine.meter import ResourceMeter
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.quantity import milli, units
from srearena.cluster.embedded.registry.strategies.pod_resources import qos_class

MINIMUM_SHARE = 0.002
"""The weight of a container without a CPU request: two cgroup shares, at 1024 shares per core."""
SYSTEM_WEIGHT = 1.0
"""The weight of the machine's own processes, in cores (chosen: system.slice has the default 1024 shares)."""


def share_processor(machine: Machine, demand: float | None = None) -> bool:
    """Divide the cores among containers in proportion to their requests; True where there were too few."""
    contended = (machine.survey()[1] if demand is None else demand) > machine.cores
    if contended or machine.contended:
        machine.contended = contended
        _divide(machine, contended)
    return contended


def _demand(meter: ResourceMeter) -> float:
    demand = meter.wanted_cores
    return demand if meter.cpu_limit is None or demand < meter.cpu_limit else meter.cpu_limit


def _divide(machine: Machine, contended: bool) -> None:
    claims: list[tuple[float, float, ResourceMeter]] = []
    if machine.own_load.wanted_cores:
        machine.own_load.settle()
        machine.own_load.available_cores = None
        claims.append((machine.own_load.wanted_cores, SYSTEM_WEIGHT, machine.own_load))
    for sandbox in machine.sandboxes.values():
        for record in sandbox.running():
            if record.container is not None:
                meter = record.container.meter
                meter.settle()
                meter.available_cores = None
                claims.append((_demand(meter), _weight(sandbox.pod, record.name), meter))
    if not contended:
        return
    # Max-min fairness: demands below their share are met first, and the remainder is divided among the others.
    left, weights = machine.cores, sum(weight for _, weight, _ in claims)
    for wish, weight, meter in sorted(claims, key=lambda claim: claim[0] / claim[1]):
        granted = min(wish, left * weight / weights)
        meter.available_cores = granted
        left -= granted
        weights -= weight


_RESTART = "RestartContainer"


def set_limits(meter: ResourceMeter, limits: Obj) -> None:
    """Set the limits of a running container."""
    cores = milli(limits["cpu"]) / 1000 if limits.get("cpu") else None
    memory = units(limits["memory"]) if limits.get("memory") else None
    if cores != meter.cpu_limit:
        meter.settle()
        meter.cpu_limit = cores
    if memory != meter.memory_limit:
        meter.memory_limit = memory


def restarts_for(container: Obj, before: Obj) -> bool:
    """Whether a change of its resources makes a container start again, by its resize policy."""
    now, was = container.get("resources") or {}, before.get("resources") or {}
    if now == was:
        return False
    strict = {row["resourceName"] for row in container.get("resizePolicy") or () if row["restartPolicy"] == _RESTART}
    return any(
        (dig(now, kind, name), dig(was, kind, name)) != (None, None)
        and not _same_amount(dig(now, kind, name), dig(was, kind, name))
        for name in strict
        for kind in ("requests", "limits")
    )


def _same_amount(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and milli(one) == milli(other)


def _weight(pod: Obj, name: str) -> float:
    request = dig(container_of(pod, name), "resources", "requests", "cpu")
    return max(milli(request) / 1000, MINIMUM_SHARE) if request else MINIMUM_SHARE


def container_of(pod: Obj, name: str) -> Obj:
    spec = pod["spec"]
    for key in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(key) or ():
            if container["name"] == name:
                return container  # type: ignore[no-any-return]
    return {}


def memory_request(pod: Obj, name: str) -> int:
    request = dig(container_of(pod, name), "resources", "requests", "memory")
    return units(request) if request else 0


def out_of_memory_victim(machine: Machine) -> tuple[Sandbox, ContainerRecord] | None:
    """The process the kernel kills when memory is exhausted: highest memory use plus oom_score_adj."""
    worst: tuple[float, Sandbox, ContainerRecord] | None = None
    for sandbox in machine.sandboxes.values():
        for record in sandbox.running():
            score = 1000 * record.working_set / machine.memory + _score_adjustment(machine, sandbox.pod, record.name)
            if worst is None or score > worst[0]:
                worst = (score, sandbox, record)
    return None if worst is None else worst[1:]


def _score_adjustment(machine: Machine, pod: Obj, name: str) -> float:
    match qos_class(pod["spec"]):
        case "Guaranteed":
            return -997
        case "BestEffort":
            return 1000
        case _:
            adjusted = 1000 - 1000 * memory_request(pod, name) // machine.memory
            return max(3, min(999, adjusted))
