"""What asking the network costs: forecasts from memory, forecasts made anew, and single attempts.

Run it with `python -m benchmarks.network`; figures belong in docs/benchmarks.md.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from srearena.cluster.embedded.assembly import assemble
from srearena.cluster.embedded.options import ClusterOptions

NAME, PORT = "kube-dns.kube-system", 9153


def microseconds(action: Callable[[], object], times: int) -> float:
    started = perf_counter()
    for _ in range(times):
        action()
    return (perf_counter() - started) / times * 1e6


def main() -> None:
    assembly = assemble(ClusterOptions(start=1_700_000_000.0))
    network = assembly.network
    source = network.fabric.hosts.nodes["worker-1"]
    hosts = network.fabric.hosts.pods.values()
    pod = next(host for host in hosts if host.pod_name.startswith("metrics-server"))

    def anew() -> None:
        network.fabric.move_epoch()
        network.forecast(pod, NAME, PORT)

    figures = {
        "forecast, known": microseconds(lambda: network.forecast(pod, NAME, PORT), 100_000),
        "forecast, made anew": microseconds(anew, 2_000),
        "one attempt": microseconds(lambda: network.reach(pod, NAME, PORT), 2_000),
        "one attempt by address": microseconds(lambda: network.reach(source, pod.address, 10250), 5_000),
    }
    for what, cost in figures.items():
        print(f"{what:24} {cost:8.2f} µs")
    assembly.world.clock.close()


if __name__ == "__main__":
    main()
