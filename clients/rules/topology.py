"""The calls between workloads: by names in the configuration of workloads, by traces, and by errors in logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from clients.rules.system import Obj, System, containers_of, name_of, template_of

_WORD = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_ADDRESS = re.compile(r"\b(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})\b")
_TRACE_LINE = re.compile(r"^( +)(\S+) .* [\d.]+ ms")
ERROR = re.compile(
    r"error|fail|fatal|panic|exception|refused|timed? ?out|unavailable|denied|forbidden|no such host|unreachable|"
    r"not authorized|cannot|could not|unable|lookup",
    re.IGNORECASE,
)


def configuration_of(system: System, workload: Obj) -> str:
    """The text that configures a workload: commands, arguments, variables, and the ConfigMaps that it reads."""
    spec = template_of(workload)["spec"]
    parts = []
    maps: set[str] = set()
    for container in [*(spec.get("initContainers") or ()), *containers_of(workload)]:
        parts += [*map(str, container.get("command") or ()), *map(str, container.get("args") or ())]
        for variable in container.get("env") or ():
            parts.append(str(variable.get("value") or ""))
            source = (variable.get("valueFrom") or {}).get("configMapKeyRef")
            if source:
                maps.add(str(source["name"]))
        maps |= {str(one["configMapRef"]["name"]) for one in container.get("envFrom") or () if "configMapRef" in one}
    maps |= config_maps_of(workload)
    for name in sorted(maps):
        found = system.find("configmaps", name)
        if found is not None:
            parts.append(json.dumps(found.get("data") or {}))
    return "\n".join(parts)


def config_maps_of(workload: Obj) -> set[str]:
    """The ConfigMaps that a workload mounts or takes variables from."""
    spec = template_of(workload)["spec"]
    found = {str(v["configMap"]["name"]) for v in spec.get("volumes") or () if "configMap" in v}
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if "configMap" in source:
                found.add(str(source["configMap"]["name"]))
    for container in [*(spec.get("initContainers") or ()), *containers_of(workload)]:
        for variable in container.get("env") or ():
            source = (variable.get("valueFrom") or {}).get("configMapKeyRef")
            if source:
                found.add(str(source["name"]))
        found |= {str(one["configMapRef"]["name"]) for one in container.get("envFrom") or () if "configMapRef" in one}
    return found


def targets(system: System) -> dict[str, str]:
    """Names and addresses that a text may mention, with the workload that each leads to."""
    known = {name_of(workload): name_of(workload) for workload in system.workloads}
    for service in system.own("services"):
        behind = system.behind(service)
        if behind:
            known[name_of(service)] = name_of(behind[0])
            for address in service["spec"].get("clusterIPs") or ():
                known[str(address)] = name_of(behind[0])
    for pod in system.own("pods"):
        address = (pod.get("status") or {}).get("podIP")
        if address:
            known[str(address)] = system.owner_of(name_of(pod))
    return known


def mentions(text: str, known: Mapping[str, str]) -> Iterator[str]:
    """The workloads that a text mentions by name or address."""
    for word in dict.fromkeys([*_WORD.findall(text), *_ADDRESS.findall(text)]):
        if word in known:
            yield known[word]


def calls(system: System, traces: str = "") -> dict[str, set[str]]:
    """For each workload those that it calls."""
    known = targets(system)
    found: dict[str, set[str]] = {name_of(workload): set() for workload in system.workloads}
    for workload in system.workloads:
        own = name_of(workload)
        found[own] |= set(mentions(configuration_of(system, workload), known)) - {own}
        for line in system.logs_of(own).splitlines():
            if ERROR.search(line):
                found[own] |= set(mentions(line, known)) - {own}
    for caller, callee in traced_calls(traces):
        own, other = system.owner_of(caller), system.owner_of(callee)
        if own and other and own != other:
            found.setdefault(own, set()).add(other)
    return found


def traced_calls(text: str) -> set[tuple[str, str]]:
    """Pairs of caller and callee in traces printed as indented trees."""
    found: set[tuple[str, str]] = set()
    stack: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = _TRACE_LINE.match(line)
        if match is None:
            stack = []
            continue
        depth, service = len(match[1]), match[2]
        while stack and stack[-1][0] >= depth:
            stack.pop()
        if stack and stack[-1][1] != service:
            found.add((stack[-1][1], service))
        stack.append((depth, service))
    return found
