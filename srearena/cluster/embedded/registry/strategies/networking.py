"""Ingresses, their classes, and network policies."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies.parts import fill, fill_empty, items, part
from srearena.cluster.embedded.registry.strategy import Strategy


def _default_ingress(obj: Obj) -> None:
    part(obj, "spec")
    part(part(obj, "status"), "loadBalancer")


def _default_ingress_class(obj: Obj) -> None:
    parameters = part(obj, "spec").get("parameters")
    if parameters is not None:
        fill(parameters, {"scope": "Cluster"})


def _default_network_policy(obj: Obj) -> None:
    spec = part(obj, "spec")
    part(spec, "podSelector")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in (*items(spec, "ingress"), *items(spec, "egress")):
        for port in items(rule, "ports"):
            fill_empty(port, {"protocol": "TCP"})


STRATEGIES = {
    "ingresses.networking.k8s.io": Strategy(default=_default_ingress),
    "ingressclasses.networking.k8s.io": Strategy(default=_default_ingress_class),
    "networkpolicies.networking.k8s.io": Strategy(default=_default_network_policy),
}
