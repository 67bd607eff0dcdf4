"""The `/metrics` pages of the cluster's own components: what they exposed at the last scrape."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
_OF_KUBELET = ("job", "instance", "metrics_path", "node", "namespace", "service", "endpoint")
_OF_COMPONENT = ("job", "instance", "namespace", "pod", "node")
_OWN_NAMESPACE = ("pod", "persistentvolumeclaim")
"""Series of the kubelet with one of these labels have a namespace of their own."""


class ComponentMetrics:
    def __init__(self, store: MetricStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def of_kubelet(self, node: str, path: str) -> bytes:
        """A page of a node's kubelet, such as `/metrics/cadvisor`."""
        target = {"job": "kubelet", "node": node, "metrics_path": path}
        return self._page(target, _OF_KUBELET, {"namespace": _OWN_NAMESPACE})

    def of_component(self, job: str) -> bytes:
        """The page of a program of the control plane, by the job under which it is scraped."""
        return self._page({"job": job}, _OF_COMPONENT, {})

    def _page(self, target: Mapping[str, str], labels: Collection[str], own: Mapping[str, Collection[str]]) -> bytes:
        # Loads the query language, which most clusters never need.
        from srearena.cluster.embedded.telemetry.metrics.catalogue import target_page

        return target_page(self._store, round(self._clock.now * 1000), target, labels, own)
