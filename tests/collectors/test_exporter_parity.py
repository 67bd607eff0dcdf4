"""Names, types and labels of real exporters: what we show, they show too, in the same shape.

`golden/exporters.json` holds, for each exporter, every family with its type and its labels, as Debian's packages
prometheus-node-exporter, prometheus-redis-exporter (with a redis-server) and prometheus-blackbox-exporter (a tcp and an
http probe) showed them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from tests.collectors.harness import Observed, deployment, service

RECORDED = json.loads((Path(__file__).parent / "golden" / "exporters.json").read_text())
OF_TARGETS = {"job", "instance", "namespace", "pod", "container", "endpoint", "node", "service"}
UNRECORDED = {
    # The machine of the recording had no systemd; types and labels are from node_exporter's collector/systemd_linux.go.
    "node-exporter": {
        "node_systemd_unit_state": ["gauge", ["name", "state", "type"]],
        "node_systemd_service_restart_total": ["counter", ["name"]],
    }
}
ABOUT_SCRAPES = ("up", "scrape_")


@pytest.fixture(scope="module")
def shop() -> Observed:
    cluster = Observed()
    cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
    for name, image in (("web", "nginx:1.27"), ("cache", "redis:7")):
        cluster.apply(deployment(name, image), "shop")
    cluster.apply(service("web"), "shop")
    cluster.pass_time(60)
    return cluster


@pytest.mark.parametrize("job", RECORDED)
def test_what_we_show_the_real_exporter_shows(shop: Observed, job: str) -> None:
    real = RECORDED[job] | UNRECORDED.get(job, {})
    families: dict[str, set[str]] = {}
    for series in shop.store.find([Matcher("job", "=", job)]):
        labels = dict(series.labels)
        name = labels.pop("__name__")
        if not name.startswith(ABOUT_SCRAPES):
            families.setdefault(name, set()).update(labels.keys() - OF_TARGETS)
    assert families
    assert {name for name in families if name not in real} == set()
    for name, labels in families.items():
        kind, known = real[name]
        assert shop.store.metadata[name].kind == kind, name
        assert labels <= set(known), name
