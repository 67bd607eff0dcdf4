"""What scraping a cluster costs: fifteen virtual minutes of it, collector by collector, for clusters of several sizes.

Run it with `python -m benchmarks.collectors [PODS ...]`; figures belong in docs/metrics.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import median
from time import process_time

from srearena.cluster.embedded.assembly import Assembly, assemble
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.options import ClusterOptions
from srearena.cluster.embedded.telemetry.collectors.collector import Collector, Target

SECONDS = 900.0
PODS_PER_SERVICE = 2
NAMESPACE = "application"


class Timed:
    """A collector, and the processor time each of its scrapes took."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self.job = collector.job
        self.name = type(collector).__name__.removesuffix("Collector")
        self.milliseconds: list[float] = []

    def scrape(self, now: float) -> None:
        started = process_time()
        self._collector.scrape(now)
        self.milliseconds.append((process_time() - started) * 1e3)

    def targets(self) -> Sequence[Target]:
        return self._collector.targets()


def service(number: int) -> tuple[Obj, Obj]:
    """A deployment with limits and a probe, and its Service."""
    labels = {"app": f"service-{number}"}
    about = {"name": f"service-{number}", "namespace": NAMESPACE}
    container = {
        "name": "main",
        "image": "nginx:1.27",
        "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": "10m", "memory": "20Mi"}, "limits": {"cpu": "500m", "memory": "200Mi"}},
        "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": PODS_PER_SERVICE, "selector": {"matchLabels": labels}, "template": template}
    return (
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": dict(about),
            "spec": {"selector": labels, "ports": [{"port": 80}]},
        },
    )


def deployed(pods: int) -> Assembly:
    assembly = assemble(ClusterOptions(start=1_700_000_000.0, workers=max(3, pods // 50)))
    client = assembly.world.component_client("kube-apiserver")
    client.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for number in range(pods // PODS_PER_SERVICE):
        deployment, front = service(number)
        client.create("deployments.apps", deployment)
        client.create("services", front)
    return assembly


def measure(pods: int) -> None:
    assembly = deployed(pods)
    telemetry = assembly.telemetry
    timed = [Timed(collector) for collector in telemetry.collectors]
    telemetry.collectors = list(timed)
    assembly.world.clock.advance(SECONDS)
    print(f"{pods} pods of an application, {len(telemetry.metrics)} series, {SECONDS / 60:.0f} virtual minutes")
    for one in timed:
        costs = one.milliseconds
        print(f"  {one.name:14}{one.job:26}usually {median(costs):7.3f} ms   in all {sum(costs):8.1f} ms")
    usual = sum(median(one.milliseconds) for one in timed)
    total = sum(sum(one.milliseconds) for one in timed)
    print(f"  {'all':40}usually {usual:7.3f} ms   in all {total:8.1f} ms")
    print(f"  {telemetry.metrics.nbytes / 1e6:.1f} MB of samples")
    assembly.world.clock.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="What scraping costs.")
    parser.add_argument("pods", type=int, nargs="*", default=[20, 60, 200], help="how many pods the application has")
    for pods in parser.parse_args().pods:
        measure(pods)


if __name__ == "__main__":
    main()
