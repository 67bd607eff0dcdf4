"""Every Service that took connections before the fault takes them again, from inside the cluster and by its name.

Why it cannot be gamed: connections are really made, by a pod of the harness, with the name service settings that the
application's own pods have now. A Service that exists but forwards to a closed port, selects nothing, or cannot be
resolved, fails, whatever its spec says. So does a pod that only idles behind it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from srearena.conductor.grading.baseline import WORKLOADS
from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.probing import ProbeFailed, run_probe
from srearena.service.kubernetes import Obj

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

Address = tuple[str, int]
_TIMEOUT = 3
_ATTEMPTS = 3
_AT_ONCE = 10


class Reachability(Check):
    name = "reachability"

    def record_baseline(self, problem: Problem) -> list[Address]:
        targets = _targets(problem.kubernetes.list("services", problem.namespace))
        return sorted(_reached(problem, targets, {}))

    def complaints(self, problem: Problem) -> list[str]:
        expected: list[Address] = [(host, port) for host, port in self.remembered(problem) or ()]
        if not expected:
            return []
        found: list[str] = []
        for settings, users in _name_services(problem):
            try:
                reached = _reached(problem, expected, settings)
            except ProbeFailed as failed:
                return [str(failed)]
            missing = [f"{host}:{port}" for host, port in expected if (host, port) not in reached]
            if missing:
                seen_by = f" with the name service settings of {', '.join(users[:3])}" if settings else ""
                found.append(f"nothing answers at {', '.join(missing)}{seen_by}")
        return found


def _targets(services: list[Obj]) -> list[Address]:
    return [
        (service["metadata"]["name"], int(port["port"]))
        for service in services
        if service["spec"].get("type") != "ExternalName"
        for port in service["spec"].get("ports") or ()
        if port.get("protocol", "TCP") == "TCP"
    ]


def _reached(problem: Problem, targets: list[Address], settings: Obj) -> set[Address]:
    """The addresses that took a connection in one of a few attempts."""
    tries = [
        f"(for i in {' '.join(map(str, range(_ATTEMPTS)))}; do "
        f"nc -z -w {_TIMEOUT} {host} {port} 2>/dev/null && echo reached {host} {port} && break; sleep 1; done) &"
        for host, port in targets
    ]
    for last in range(_AT_ONCE - 1, len(tries), _AT_ONCE):
        tries[last] += " wait"
    printed = run_probe(problem, "\n".join([*tries, "wait"]), settings)
    lines = [line.split() for line in printed.splitlines() if line.startswith("reached ")]
    return {(line[1], int(line[2])) for line in lines if len(line) == 3}


def _name_services(problem: Problem) -> list[tuple[Obj, list[str]]]:
    """The ways in which the application's pods look names up now, each with the workloads that use it."""
    ways: dict[str, tuple[Obj, list[str]]] = {json.dumps({}): ({}, [])}
    for resource in WORKLOADS:
        for workload in problem.kubernetes.list(resource, problem.namespace):
            spec = workload["spec"]["template"]["spec"]
            way: Obj = {}
            if spec.get("dnsPolicy", "ClusterFirst") not in ("ClusterFirst", "ClusterFirstWithHostNet"):
                way["dnsPolicy"] = spec["dnsPolicy"]
            if spec.get("dnsConfig"):
                way["dnsConfig"] = spec["dnsConfig"]
            ways.setdefault(json.dumps(way, sort_keys=True), (way, []))[1].append(workload["metadata"]["name"])
    return list(ways.values())
