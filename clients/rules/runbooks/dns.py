"""The cluster's DNS: rules in its configuration that answer for names of the application."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clients.rules import commands
from clients.rules.changes import edited
from clients.rules.hypotheses import Hypothesis, Repair, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import SYSTEM_NAMESPACE, Obj, System, labels_of, name_of, namespace_of, path_of

_BLOCK = re.compile(r"^[ \t]*(template|rewrite|hosts|file|erratic|acl)\b[^\n{]*(?:\{[^{}]*\}|)[ \t]*\n", re.MULTILINE)
_ZONE = re.compile(r"^([ \t]*kubernetes[ \t]+)([^\n{]*?)([ \t]*\{?[ \t]*)$", re.MULTILINE)


@runbook
def answers_wrongly(system: System) -> Iterator[Hypothesis]:
    """Its Corefile was edited: a plugin hides or redirects names, or the cluster's zone is not served."""
    for config in system.all("configmaps"):
        text = str((config.get("data") or {}).get("Corefile") or "")
        if namespace_of(config) != SYSTEM_NAMESPACE or not text or not edited(config, "data"):
            continue
        better = _without_interference(text)
        if better == text and not system.alerts:
            continue
        names = {name_of(one) for one in system.workloads}
        yield Hypothesis(
            path_of(config),
            "the configuration of the cluster's DNS was edited, and answers for names of the application"
            if better != text
            else "the configuration of the cluster's DNS was edited before the trouble",
            Strength.CONFIRMED if better != text else Strength.POSSIBLE,
            [commands.patch(config, [(("data", "Corefile"), better)]), *_restarted(system)] if better != text else [],
            frozenset(names),
        )


def _without_interference(text: str) -> str:
    text = _BLOCK.sub("", text)

    def zone(match: re.Match[str]) -> str:
        zones = match[2].split()
        return match[0] if "cluster.local" in zones else f"{match[1]}cluster.local in-addr.arpa ip6.arpa{match[3]}"

    return _ZONE.sub(zone, text)


def _restarted(system: System) -> list[Repair]:
    """New pods read the configuration at once; workloads of the platform are restarted by deleting their pods."""
    pods: list[Obj] = [
        pod
        for pod in system.all("pods")
        if namespace_of(pod) == SYSTEM_NAMESPACE and labels_of(pod).get("k8s-app") == "kube-dns"
    ]
    return [commands.delete(pod) for pod in pods]
