"""NetworkPolicies: which connections are allowed.

A pod that no policy selects for a direction is not isolated in it. Once one selects it, only traffic that some
selecting policy allows passes; other packets are dropped, which a client sees as a timeout. Egress of the source and
ingress of the target must both allow it. Traffic of a pod with itself, and from a node to the pods on it, is always
allowed. Policies do not apply to pods on the host network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from srearena.cluster.embedded.network.addresses import within
from srearena.cluster.embedded.network.hosts import Host
from srearena.cluster.embedded.objects import Obj, dig, labels_of, name_of, namespace_of
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.selectors import NOTHING, LabelSelector, label_selector_of
from srearena.cluster.embedded.store import Store

POLICIES = "networkpolicies.networking.k8s.io"
PODS = "pods"
NAMESPACES = "namespaces"


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer that a rule allows: pods of certain namespaces, or a range of addresses."""

    own_namespace: str
    """Where `namespaces` is None, the peer is pods of this namespace."""
    pods: LabelSelector | None
    namespaces: LabelSelector | None
    cidr: str = ""
    exceptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule of a policy in one direction. No peers means all, no ports means all."""

    peers: tuple[Peer, ...]
    ports: tuple[tuple[str, int | str | None, int | None], ...]
    """Protocol, first port (a number, a name, or None for all) and last port."""


@dataclass(frozen=True, slots=True)
class Policy:
    name: str
    namespace: str
    selector: LabelSelector
    ingress: tuple[PolicyRule, ...] | None
    """None where the policy does not cover that direction."""
    egress: tuple[PolicyRule, ...] | None


class Policies:
    """The policies of a cluster, compiled when they change, and the verdict on each pair of hosts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._by_namespace: dict[str, list[Policy]] | None = None
        self._selected: dict[str, list[Policy]] = {}

    def note_policies(self) -> None:
        self._by_namespace = None
        self._selected.clear()

    def note_pods(self) -> None:
        """Labels of pods changed, or pods were added or removed."""
        self._selected.clear()

    def allows(
        self,
        source: Host | None,
        source_address: str,
        target: Host | None,
        address: str,
        port: int,
        protocol: str,
    ) -> bool:
        """Whether a packet may leave its source and enter its target (None for an address without host)."""
        if source is target or not self._policies():
            return True
        if (
            source is not None
            and source.is_isolable
            and not self._verdict(source, "egress", target, address, target, port, protocol)
        ):
            return False
        if target is None or not target.is_isolable:
            return True
        if source is not None and not source.is_isolable and source.node == target.node:
            return True
        return self._verdict(target, "ingress", source, source_address, target, port, protocol)

    def selecting(self, host: Host) -> list[Policy]:
        """The policies that select a pod."""
        found = self._selected.get(host.uid)
        if found is None:
            labels = self._labels(host)
            policies = self._policies().get(host.pod_namespace, ())
            found = [policy for policy in policies if labels is not None and policy.selector.matches(labels)]
            self._selected[host.uid] = found
        return found

    def _verdict(
        self,
        isolated_host: Host,
        direction: str,
        other: Host | None,
        other_address: str,
        target: Host | None,
        port: int,
        protocol: str,
    ) -> bool:
        isolated = False
        for policy in self.selecting(isolated_host):
            rules = policy.ingress if direction == "ingress" else policy.egress
            if rules is None:
                continue
            isolated = True
            for rule in rules:
                if self._port_matches(rule, target, port, protocol) and self._peer_matches(rule, other, other_address):
                    return True
        return not isolated

    def _port_matches(self, rule: PolicyRule, target: Host | None, port: int, protocol: str) -> bool:
        if not rule.ports:
            return True
        for wanted_protocol, first, last in rule.ports:
            if wanted_protocol != protocol:
                continue
            if first is None:
                return True
            if isinstance(first, str):
                if port in self._named_ports(target, first, protocol):
                    return True
            elif first <= port <= (last or first):
                return True
        return False

    def _named_ports(self, target: Host | None, name: str, protocol: str) -> list[int]:
        """The numbers of a named port in the target pod's containers."""
        pod = self._pod(target)
        return [
            int(port["containerPort"])
            for container in dig(pod, "spec", "containers", default=())
            for port in container.get("ports") or ()
            if port.get("name") == name and (port.get("protocol") or "TCP") == protocol
        ]

    def _peer_matches(self, rule: PolicyRule, other: Host | None, address: str) -> bool:
        if not rule.peers:
            return True
        labels = self._labels(other) if other is not None and other.is_isolable else None
        for peer in rule.peers:
            if peer.cidr:
                if within(address, peer.cidr) and not any(within(address, cidr) for cidr in peer.exceptions):
                    return True
                continue
            if other is None or labels is None:
                continue
            if peer.namespaces is None:
                if other.pod_namespace != peer.own_namespace:
                    continue
            elif not peer.namespaces.matches(self._namespace_labels(other.pod_namespace)):
                continue
            if peer.pods is None or peer.pods.matches(labels):
                return True
        return False

    def _pod(self, host: Host | None) -> Obj | None:
        if host is None or not host.pod_name:
            return None
        return self._store.get(PODS, host.pod_namespace, host.pod_name)

    def _labels(self, host: Host) -> dict[str, str] | None:
        pod = self._pod(host)
        return labels_of(pod) if pod is not None else None

    def _namespace_labels(self, name: str) -> dict[str, str]:
        namespace = self._store.get(NAMESPACES, "", name)
        return labels_of(namespace) if namespace is not None else {}

    def _policies(self) -> dict[str, list[Policy]]:
        if self._by_namespace is None:
            self._by_namespace = {}
            for obj in self._store.objects(POLICIES):
                self._by_namespace.setdefault(namespace_of(obj), []).append(compiled_policy(obj))
        return self._by_namespace


def compiled_policy(obj: Obj) -> Policy:
    spec = obj.get("spec") or {}
    namespace = namespace_of(obj)
    kinds = spec.get("policyTypes") or (["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])
    return Policy(
        name_of(obj),
        namespace,
        _selector(spec.get("podSelector") or {}),
        _rules(spec.get("ingress"), "from", namespace) if "Ingress" in kinds else None,
        _rules(spec.get("egress"), "to", namespace) if "Egress" in kinds else None,
    )


def _rules(rules: Any, side: str, namespace: str) -> tuple[PolicyRule, ...]:
    return tuple(
        PolicyRule(
            tuple(_peer(peer, namespace) for peer in rule.get(side) or ()),
            tuple(
                (port.get("protocol") or "TCP", port.get("port"), port.get("endPort"))
                for port in rule.get("ports") or ()
            ),
        )
        for rule in rules or ()
    )


def _peer(peer: Obj, namespace: str) -> Peer:
    block = peer.get("ipBlock")
    if block:
        return Peer(namespace, None, None, block.get("cidr") or "", tuple(block.get("except") or ()))
    pods, namespaces = peer.get("podSelector"), peer.get("namespaceSelector")
    return Peer(
        namespace,
        _selector(pods) if pods is not None else None,
        _selector(namespaces) if namespaces is not None else None,
    )


def _selector(selector: Obj) -> LabelSelector:
    """An invalid selector selects nothing; validation keeps such out of the store."""
    try:
        return label_selector_of(selector)
    except ApiError:
        return NOTHING
