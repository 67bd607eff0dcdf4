"""Services that lead nowhere, to the wrong port, or to pods of others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clients.rules import commands
from clients.rules.changes import edited
from clients.rules.hypotheses import Hypothesis, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, containers_of, labels_of, name_of, namespace_of, path_of, template_of
from clients.rules.topology import configuration_of


def _owner(system: System, service: Obj) -> Obj | None:
    """The workload that a Service is meant for: of the same name, or the one that most of its selector fits."""
    selector = service["spec"].get("selector") or {}
    named = system.workload(name_of(service))
    scored = [
        (sum((template_of(one)["metadata"].get("labels") or {}).get(k) == v for k, v in selector.items()), one)
        for one in system.workloads
    ]
    best = max((score for score, _ in scored), default=0)
    fitting = [one for score, one in scored if score == best and score]
    if named is not None and (not fitting or named in fitting):
        return named
    return fitting[0] if len(fitting) == 1 else None


@runbook
def selects_nothing(system: System) -> Iterator[Hypothesis]:
    """The selector fits no workload's pods, although one workload is meant."""
    for service in system.own("services"):
        selector = service["spec"].get("selector") or {}
        if (
            not selector
            or system.behind(service)
            or any(selector.items() <= labels_of(pod).items() for pod in system.own("pods"))
        ):
            continue
        meant = _owner(system, service)
        if meant is None:
            continue
        labels = template_of(meant)["metadata"].get("labels") or {}
        right = {key: value for key, value in selector.items() if labels.get(key) == value}
        right = right or dict(meant["spec"]["selector"].get("matchLabels") or {})
        yield Hypothesis(
            path_of(service),
            f"its selector {selector} fits no pod; the pods of {name_of(meant)} have {labels}",
            Strength.CONFIRMED,
            [commands.patch(service, [(("spec", "selector"), right)])],
            frozenset({name_of(meant), name_of(service)}),
        )


@runbook
def selects_too_much(system: System) -> Iterator[Hypothesis]:
    """The selector also fits pods of workloads that do not open its port."""
    for service in system.own("services"):
        behind = system.behind(service)
        meant = system.workload(name_of(service))
        if len(behind) < 2 or meant is None or meant not in behind or not edited(service, "spec"):
            continue
        labels = meant["spec"]["selector"].get("matchLabels") or {}
        others = [name_of(one) for one in behind if one is not meant and not _same_program(one, meant)]
        if not others:
            continue
        yield Hypothesis(
            path_of(service),
            f"its selector also fits the pods of {', '.join(others)}",
            Strength.CONFIRMED,
            [commands.patch(service, [(("spec", "selector"), dict(labels))])],
            frozenset({name_of(service), name_of(meant)}),
        )


def _same_program(one: Obj, other: Obj) -> bool:
    return {c.get("image") for c in containers_of(one)} == {c.get("image") for c in containers_of(other)} and [
        c.get("command") for c in containers_of(one)
    ] == [c.get("command") for c in containers_of(other)]


@runbook
def wrong_target_port(system: System) -> Iterator[Hypothesis]:
    """It forwards to a port that its workload neither declares nor used to be asked for."""
    for service in system.own("services"):
        meant = _owner(system, service)
        if meant is None:
            continue
        containers = containers_of(meant)
        numbers = {int(p["containerPort"]) for c in containers for p in c.get("ports") or ()}
        names = {str(p["name"]) for c in containers for p in c.get("ports") or () if p.get("name")}
        for index, entry in enumerate(service["spec"].get("ports") or ()):
            target = entry.get("targetPort", entry["port"])
            declared = target in numbers if isinstance(target, int) else target in names
            if declared or (isinstance(target, int) and not numbers):
                continue
            down = any(
                a.name.startswith("ServiceEndpointDown") and a.subject == name_of(service) for a in system.alerts
            )
            changed = edited(service, "spec", "ports") or down
            if isinstance(target, int) and not changed:
                continue  # containers may listen on ports that they do not declare
            port = int(entry["port"])
            right = port if port in numbers or not numbers else min(numbers, key=lambda n: (abs(n - port), n))
            yield Hypothesis(
                path_of(service),
                f"it forwards port {port} to {target}, and {name_of(meant)} opens {sorted(numbers) or 'no port'}",
                Strength.CONFIRMED,
                [commands.patch(service, [(("spec", "ports", index, "targetPort"), right)])],
                frozenset({name_of(service), name_of(meant)}),
            )


@runbook
def node_local_traffic(system: System) -> Iterator[Hypothesis]:
    """Traffic is kept on the node of the caller, where there may be no pod of the Service."""
    for service in system.own("services"):
        if service["spec"].get("internalTrafficPolicy") != "Local":
            continue
        pods = {pod["spec"].get("nodeName") for one in system.behind(service) for pod in system.pods_of(name_of(one))}
        if len(pods) < len([n for n in system.all("nodes") if not n["spec"].get("taints")]):
            yield Hypothesis(
                path_of(service),
                "it keeps traffic on the caller's node (internalTrafficPolicy Local), and not every node has a pod",
                Strength.CONFIRMED,
                [commands.patch(service, [(("spec", "internalTrafficPolicy"), "Cluster")])],
                frozenset({name_of(service), *(name_of(one) for one in system.behind(service))}),
            )


@runbook
def missing_service(system: System) -> Iterator[Hypothesis]:
    """A workload opens a port and has no Service, while all its siblings have one and something fails."""
    if not system.alerts:
        return
    servers = [one for one in system.workloads if any(c.get("ports") for c in containers_of(one))]
    alone = [one for one in servers if not system.services_of(one) and system.find("services", name_of(one)) is None]
    for workload in alone:
        space = namespace_of(workload)
        siblings = [one for one in system.workloads if namespace_of(one) == space and one is not workload]
        others = [configuration_of(system, one) + system.logs_of(name_of(one)) for one in siblings]
        if len(siblings) > 3 and any(
            re.search(rf"(?<![-\w]){re.escape(name_of(workload))}(?![-\w])", t) for t in others
        ):
            yield from _missing(system, workload)


def _missing(system: System, workload: Obj) -> Iterator[Hypothesis]:
    ports = [p for c in containers_of(workload) for p in c.get("ports") or ()]
    manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name_of(workload), "namespace": namespace_of(workload)},
        "spec": {
            "selector": dict(workload["spec"]["selector"]["matchLabels"]),
            "ports": [
                {
                    "name": str(p.get("name") or f"port-{p['containerPort']}"),
                    "port": int(p["containerPort"]),
                    "targetPort": int(p["containerPort"]),
                    "protocol": p.get("protocol", "TCP"),
                }
                for p in ports
            ],
        },
    }
    yield Hypothesis(
        f"{namespace_of(workload)}/Service/{name_of(workload)}",
        "others look for it by name, and no Service leads to it",
        Strength.CONFIRMED,
        [commands.apply(manifest)],
        kind="Operation Error",
    )
