"""Every Service that accepted connections before the fault accepts them again, inside the cluster and by name.

Why it cannot be gamed: a pod of the harness opens real connections, with the DNS settings that the application's pods
have now. A Service that forwards to a closed port, selects no pod, or cannot be resolved fails, whatever its spec says.
So does a pod behind it that only idles, and a name that DNS, or a pod's host aliases, resolve to any other address than
the Service's own. Which pods respond at that address is the subject of `backends`. Where a network policy admits only
some pods, the connection is opened with the labels of a workload that it admits; that the application's other clients
are admitted as well is the subject of `frontend` and `spans`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
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
_CLIENTS = 4
"""Different clients that are tried, so that a check of a system with many policies ends in time."""
_REACHED = re.compile(r"^reached (\S+) (\d+) .*?\(\[?([0-9a-f.:]+?)\]?:\d+\) open", re.MULTILINE)
"""As busybox's nc reports an open port: `reached web 80 web (10.96.7.1:80) open`."""


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
        addresses = _service_addresses(problem)
        for settings, users in _dns_settings(problem):
            try:
                reached = _reachable(problem, expected, settings)
                for labels in _admitted_clients(problem) if len(reached) < len(expected) else ():
                    rest = [target for target in expected if target not in reached]
                    reached |= _reachable(problem, rest, settings, labels) if rest else {}
            except ProbeFailed as failed:
                return [str(failed)]
            suffix = f" with the DNS settings of {', '.join(users[:3])}" if settings else ""
            missing = [f"{host}:{port}" for host, port in expected if (host, port) not in reached]
            if missing:
                complaints.append(f"no connection to {', '.join(missing)}{suffix}")
            strange = {host: address for (host, _), address in reached.items() if address not in addresses[host]}
            complaints += [
                f"the name {host} leads to {address}, which is not the Service's address{suffix}"
                for host, address in strange.items()
            ]
        return complaints


def _targets(services: list[Obj]) -> list[Address]:
    return [
        (service["metadata"]["name"], int(port["port"]))
        for service in services
        if service["spec"].get("type") != "ExternalName"
        for port in service["spec"].get("ports") or ()
        if port.get("protocol", "TCP") == "TCP"
    ]


def _reachable(
    problem: Problem, targets: list[Address], settings: Obj, labels: dict[str, str] | None = None
) -> dict[Address, str]:
    """The targets that accept a connection in one of a few attempts, each with the address that its name led to."""
    tries = [
        f"(for i in {' '.join(map(str, range(_ATTEMPTS)))}; do opened=$(nc -zv -w {_TIMEOUT} {host} {port} 2>&1) && "
        f'echo "reached {host} {port} $opened" && break; sleep 1; done) &'
        for host, port in targets
    ]
    for last in range(_PARALLEL - 1, len(tries), _PARALLEL):
        tries[last] += " wait"
    output = run_probe(problem, "\n".join([*tries, "wait"]), settings, labels=labels)
    return {(host, int(port)): address for host, port, address in _REACHED.findall(output)}


def _admitted_clients(problem: Problem) -> list[dict[str, str]]:
    """The labels of a few Deployments to which network policies give more rights than to other pods.

    A pod with these labels belongs to no ReplicaSet, whose selector has the hash of the template as well.
    """
    peers: list[Obj] = []
    for policy in problem.kubernetes.list("networkpolicies.networking.k8s.io", problem.namespace):
        peers += [peer for rule in policy["spec"].get("ingress") or () for peer in rule.get("from") or ()]
        peers += [policy["spec"]] if policy["spec"].get("egress") else []
    selectors = [((peer.get("podSelector") or {}).get("matchLabels") or {}).items() for peer in peers]
    found: list[dict[str, str]] = []
    for workload in problem.kubernetes.list("deployments.apps", problem.namespace) if any(selectors) else ():
        labels: dict[str, str] = workload["spec"]["template"]["metadata"].get("labels") or {}
        if any(selector and selector <= labels.items() for selector in selectors) and labels not in found:
            found.append(labels)
    return found[:_CLIENTS]


def _service_addresses(problem: Problem) -> dict[str, set[str]]:
    """The addresses of every Service: its own, or where it has none, those of its endpoints."""
    found: dict[str, set[str]] = defaultdict(set)
    for service in problem.kubernetes.list("services", problem.namespace):
        own = service["spec"].get("clusterIPs") or [service["spec"].get("clusterIP")]
        found[service["metadata"]["name"]].update(address for address in own if address and address != "None")
    headless = {name for name, addresses in found.items() if not addresses}
    for endpoints in problem.kubernetes.list("endpointslices.discovery.k8s.io", problem.namespace) if headless else ():
        name = (endpoints["metadata"].get("labels") or {}).get("kubernetes.io/service-name", "")
        if name in headless:
            found[name].update(one for entry in endpoints.get("endpoints") or () for one in entry["addresses"])
    return found


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
