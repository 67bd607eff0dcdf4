"""kube-proxy on every node: the rules in force on it, and session affinity.

While a node's kube-proxy runs, its rules follow the cluster. When it dies the kernel keeps the rules it wrote last: the
node uses the state of that moment until a kube-proxy is back. On a node on which none ever ran, no rules exist and
Service addresses are unreachable.
"""

from __future__ import annotations

from collections.abc import Callable

from srearena.cluster.embedded.network.services import Backend, Rule, RuleTable, Services

_SWEEP_EVERY = 1024


class Proxies:
    def __init__(self, services: Services, changed: Callable[[], object]) -> None:
        self._services = services
        self._changed = changed
        self._running: dict[str, int] = {}
        """Nodes with a kube-proxy, and how many of them."""
        self._stale_tables: dict[str, RuleTable] = {}
        self._affinities: dict[tuple[str, str, str, str], tuple[Backend, float]] = {}
        self._writes_since_sweep = 0

    def started(self, node: str) -> None:
        """A kube-proxy on that node has synced its rules."""
        self._running[node] = self._running.get(node, 0) + 1
        self._stale_tables.pop(node, None)
        self._changed()

    def stopped(self, node: str) -> None:
        """A kube-proxy on that node ended; its rules stay."""
        left = self._running.get(node, 0) - 1
        if left > 0:
            self._running[node] = left
            return
        if self._running.pop(node, None) is not None:
            self._stale_tables[node] = self._services.table.copy()
            self._changed()

    def table(self, node: str) -> RuleTable | None:
        """The rules in force on a node; None where there never were any."""
        if node in self._running:
            return self._services.table
        return self._stale_tables.get(node)

    # Session affinity, per node, rule and client.

    def affinity(self, node: str, rule: Rule, client: str, now: float) -> Backend | None:
        found = self._affinities.get((node, rule.service, rule.port_name, client))
        return found[0] if found is not None and found[1] > now else None

    def set_affinity(self, node: str, rule: Rule, client: str, backend: Backend, now: float) -> None:
        self._affinities[(node, rule.service, rule.port_name, client)] = (backend, now + rule.affinity_seconds)
        self._writes_since_sweep += 1
        if self._writes_since_sweep >= _SWEEP_EVERY:
            self._writes_since_sweep = 0
            self._affinities = {key: value for key, value in self._affinities.items() if value[1] > now}
