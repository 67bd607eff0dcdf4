"""Network policies that cut off what calls each other, and Ingresses that lead to the wrong place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clients.rules import commands
from clients.rules.changes import edited
from clients.rules.hypotheses import Hypothesis, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, matches, name_of, path_of, template_of
from clients.rules.topology import calls

_ENTRY = re.compile("front|gateway|web|proxy|nginx|ui$")
"""Words in the names of Services that users call."""


@runbook
def denying_policy(system: System) -> Iterator[Hypothesis]:
    """A policy isolates pods and lets no pod of the namespace in (or out)."""
    for policy in system.own("networkpolicies"):
        spec = policy["spec"]
        hit = [
            one
            for one in system.workloads
            if matches(spec.get("podSelector") or {}, template_of(one)["metadata"].get("labels") or {})
        ]
        types = spec.get("policyTypes") or ["Ingress"]
        closed = [kind for kind in types if _closed(system, spec, kind)]
        if not hit or not closed:
            continue
        yield Hypothesis(
            path_of(policy),
            f"it selects {', '.join(name_of(one) for one in hit[:4])} and allows no {' and no '.join(closed).lower()}",
            Strength.CONFIRMED,
            [commands.delete(policy)],
            frozenset(name_of(one) for one in hit),
        )


def _closed(system: System, spec: Obj, kind: str) -> bool:
    """Whether no rule of this direction lets a pod of the namespace through."""
    side = "from" if kind == "Ingress" else "to"
    for rule in spec.get(kind.lower()) or ():
        peers = rule.get(side)
        if not peers:
            return False
        for peer in peers:
            if "ipBlock" in peer or "namespaceSelector" in peer:
                return False
            selector = peer.get("podSelector") or {}
            if any(
                matches(selector, template_of(one)["metadata"].get("labels") or {}) for one in system.workloads
            ) or any(matches(selector, pod["metadata"].get("labels") or {}) for pod in system.own("pods")):
                return False
    return True


@runbook
def ingress_leads_astray(system: System) -> Iterator[Hypothesis]:
    """The backend of an Ingress does not exist, has another port, or was changed while the Ingress fails."""
    failing = {alert.labels.get("ingress") for alert in system.alerts}
    for ingress in system.own("ingresses"):
        for i, rule in enumerate(ingress["spec"].get("rules") or ()):
            for j, entry in enumerate((rule.get("http") or {}).get("paths") or ()):
                backend = (entry.get("backend") or {}).get("service") or {}
                service = system.find("services", str(backend.get("name")))
                port = (backend.get("port") or {}).get("number")
                ports = [int(p["port"]) for p in service["spec"]["ports"]] if service else []
                wrong = service is None or (port is not None and port not in ports)
                if not wrong and not (name_of(ingress) in failing and edited(ingress, "spec", "rules")):
                    continue
                path = ("spec", "rules", i, "http", "paths", j, "backend", "service")
                right = _front(system, ports[0] if wrong and ports else None, service)
                repairs = []
                if right is not None:
                    value = {"name": name_of(right), "port": {"number": int(right["spec"]["ports"][0]["port"])}}
                    repairs = [commands.patch(ingress, [(path, value)])]
                yield Hypothesis(
                    path_of(ingress), f"its backend is {backend}", Strength.CONFIRMED, repairs, kind="Misconfiguration"
                )


def _front(system: System, port: int | None, service: Obj | None) -> Obj | None:
    """The Service that visitors are meant to reach: the given one, or the one that no other refers to."""
    if port is not None and service is not None:
        return service
    named = [one for one in system.own("services") if _ENTRY.search(name_of(one))]
    graph = calls(system)
    called = {callee for callees in graph.values() for callee in callees}
    entries = [
        one
        for one in system.own("services")
        if one is not service and any(graph.get(name_of(w)) and name_of(w) not in called for w in system.behind(one))
    ]
    return next(iter(named or entries), None)
