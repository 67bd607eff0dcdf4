"""Every Service that accepted connections before the fault accepts them again, inside the cluster and by name.

Why it cannot be gamed: a pod of the harness opens real connections, with the DNS settings that the application's pods
have now. A Service that forwards to a closed port, selects no pod, or cannot be resolved fails, whatever its spec says.
So does a pod behind it that only idles.
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
_PARALLEL = 10


class Reachability(Check):
    """The Services of the application accept TCP connections."""

    name = "reachability"

    def record_baseline(self, problem: Problem) -> list[Address]:
        targets = _targets(problem.kubernetes.list("services", problem.namespace))
        return sorted(_reachable(problem, targets, {}))

    def complaints(self, problem: Problem) -> list[str]:
        expected: list[Address] = [(host, port) for host, port in self.baseline_value(problem) or ()]
        if not expected:
            return []
        complaints: list[str] = []
        for settings, users in _dns_settings(problem):
            try:
                reachable = _reachable(problem, expected, settings)
            except ProbeFailed as failed:
                return [str(failed)]
            missing = [f"{host}:{port}" for host, port in expected if (host, port) not in reachable]
            if missing:
                suffix = f" with the DNS settings of {', '.join(users[:3])}" if settings else ""
                complaints.append(f"no connection to {', '.join(missing)}{suffix}")
        return complaints


def _targets(services: list[Obj]) -> list[Address]:
    return [
        (service["metadata"]["name"], int(port["port"]))
        for service in services
        if service["spec"].get("type") != "ExternalName"
        for port in service["spec"].get("ports") or ()
        if port.get("protocol", "TCP") == "TCP"
    ]


def _reachable(problem: Problem, targets: list[Address], settings: Obj) -> set[Address]:
    """The addresses that accept a connection in one of a few attempts."""
    tries = [
        f"(for i in {' '.join(map(str, range(_ATTEMPTS)))}; do "
        f"nc -z -w {_TIMEOUT} {host} {port} 2>/dev/null && echo reached {host} {port} && break; sleep 1; done) &"
        for host, port in targets
    ]
    for last in range(_PARALLEL - 1, len(tries), _PARALLEL):
        tries[last] += " wait"
    output = run_probe(problem, "\n".join([*tries, "wait"]), settings)
    lines = [line.split() for line in output.splitlines() if line.startswith("reached ")]
    return {(line[1], int(line[2])) for line in lines if len(line) == 3}


def _dns_settings(problem: Problem) -> list[tuple[Obj, list[str]]]:
    """The DNS settings of the application's pods, each with the workloads that use them."""
    variants: dict[str, tuple[Obj, list[str]]] = {json.dumps({}): ({}, [])}
    for resource in WORKLOADS:
        for workload in problem.kubernetes.list(resource, problem.namespace):
            spec = workload["spec"]["template"]["spec"]
            settings: Obj = {}
            if spec.get("dnsPolicy", "ClusterFirst") not in ("ClusterFirst", "ClusterFirstWithHostNet"):
                settings["dnsPolicy"] = spec["dnsPolicy"]
            if spec.get("dnsConfig"):
                settings["dnsConfig"] = spec["dnsConfig"]
            variants.setdefault(json.dumps(settings, sort_keys=True), (settings, []))[1].append(
                workload["metadata"]["name"]
            )
    return list(variants.values())
