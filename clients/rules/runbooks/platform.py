"""The platform's own configuration: kube-proxy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from clients.rules import commands
from clients.rules.changes import edited
from clients.rules.hypotheses import Hypothesis, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import SYSTEM_NAMESPACE, System, labels_of, name_of, namespace_of, path_of

_MODES = ("iptables", "ipvs", "nftables")


@runbook
def proxy_does_not_start(system: System) -> Iterator[Hypothesis]:
    """The mode of kube-proxy is unknown, or its configuration was edited and its pods fail."""
    for config in system.all("configmaps"):
        data = config.get("data") or {}
        for key, text in data.items():
            if namespace_of(config) != SYSTEM_NAMESPACE or "KubeProxyConfiguration" not in str(text):
                continue
            match = re.search(r'^mode:[ \t]*"?([\w-]*)"?[ \t]*$', str(text), re.MULTILINE)
            mode = match[1] if match else ""
            if not mode or mode in _MODES or not edited(config, "data"):
                continue
            right = (get_close_matches(mode, _MODES, n=1) or ["iptables"])[0]
            better = re.sub(r"^mode:.*$", f"mode: {right}", str(text), flags=re.MULTILINE)
            pods = [
                pod
                for pod in system.all("pods")
                if namespace_of(pod) == SYSTEM_NAMESPACE and labels_of(pod).get("k8s-app") == "kube-proxy"
            ]
            yield Hypothesis(
                path_of(config),
                f"it asks for the mode {mode}, which there is not",
                Strength.CONFIRMED,
                [commands.patch(config, [(("data", key), better)]), *(commands.delete(pod) for pod in pods)],
                frozenset({name_of(config), *(name_of(one) for one in system.workloads)}),
            )
