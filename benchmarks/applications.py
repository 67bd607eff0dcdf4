"""What living applications cost: bringing one up with a past, virtual seconds per second, memory, and how it grows.

    python benchmarks/applications.py [APP ...]
    python benchmarks/applications.py --growth

Everything runs in one process, on one core; times are processor seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

HISTORY = 900.0
APPLICATIONS = (
    "hotel_reservation",
    "social_network",
    "online_boutique",
    "blueprint_hotel_reservation",
    "astronomy_shop",
    "train_ticket",
    "fleetcast",
)


def measure(name: str) -> dict[str, float | str]:
    """In this process: bring an application up, live 15 minutes, then an hour."""
    began = time.process_time()
    from srearena.cluster import start_embedded
    from srearena.service.apps import find_application

    app = find_application(name)
    models = [app.folder] if app.model_path is not None else []
    cluster = start_embedded(models=models, in_process=True, seed=1, behind=HISTORY + 240)
    with cluster:
        started = time.process_time()
        app.deploy(cluster)
        app.wait_until_ready(cluster)
        app.start_workload(cluster)
        ready = time.process_time()
        cluster.wait(HISTORY)
        lived = time.process_time()
        cluster.wait(2700)
        hour = time.process_time()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "application": name,
        "start": started - began,
        "deploy": ready - started,
        "15 minutes": lived - ready,
        "up": lived - began,
        "virtual seconds per second": (HISTORY + 2700) / (hour - ready),
        "MB after an hour": memory,
    }


GROWTH = {
    "requests a second": ("rate", (10, 100, 1000, 10_000)),
    "replicas of each service": ("replicas", (1, 2, 4, 8)),
    "minutes of history": ("minutes", (15, 60, 240)),
}
"""What of Hotel Reservation grows, one thing at a time."""


def grown(rate: float = 100, replicas: int = 1, minutes: float = 15) -> dict[str, float]:
    """In this process: Hotel Reservation of another size, what a minute of it costs, and a query over all of it."""
    import urllib.parse
    import urllib.request

    from srearena.cluster import start_embedded
    from srearena.service.apps import find_application
    from srearena.service.kubernetes import Kubernetes

    app = find_application("hotel_reservation")
    with start_embedded(models=[app.folder], in_process=True, seed=1, behind=60 * minutes + 600) as cluster:
        app.deploy(cluster)
        app.wait_until_ready(cluster)
        with Kubernetes.of(cluster) as api:
            if replicas > 1:
                for deployment in api.list("deployments", app.namespace):
                    if "mongo" not in deployment["metadata"]["name"]:
                        api.scale("deployments", deployment["metadata"]["name"], replicas, app.namespace)
                app.wait_until_ready(cluster)
            pods = len(api.list("pods", app.namespace))
        app.start_workload(cluster, rate=rate)
        cluster.wait(60)
        began = time.process_time()
        cluster.wait(60 * minutes)
        lived = time.process_time()
        endpoints = cluster.telemetry
        now = time.time() - 600
        parameters = {
            "query": "sum by (service_name) (rate(traces_span_metrics_calls_total[1m]))",
            "start": now - 60 * minutes,
            "end": now,
            "step": max(15.0, minutes * 60 / 100),
        }
        request = urllib.request.Request(
            f"{endpoints.prometheus}/api/v1/query_range?{urllib.parse.urlencode(parameters)}",
            headers={"Authorization": f"Bearer {endpoints.token}"},
        )
        with urllib.request.urlopen(request) as answer:
            answer.read()
        queried = time.process_time()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "pods": pods,
        "milliseconds a minute": 1000 * (lived - began) / minutes,
        "query": 1000 * (queried - lived),
        "MB": memory,
    }


def show_growth() -> None:
    for title, (argument, sizes) in GROWTH.items():
        print(f"{title:<28}{'pods':>6}{'ms per minute':>15}{'ms per query':>14}{'MB':>6}")
        for size in sizes:
            words = [sys.executable, __file__, "--grown", json.dumps({argument: size})]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{size:<28}{(done.stderr.strip().splitlines() or ['failed'])[-1]}")
                continue
            row = json.loads(done.stdout.splitlines()[-1])
            print(
                f"{size:<28}{row['pods']:>6}{row['milliseconds a minute']:>15.1f}{row['query']:>14.1f}{row['MB']:>6.0f}"
            )
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("applications", nargs="*", default=list(APPLICATIONS))
    parser.add_argument("--growth", action="store_true", help="how cost grows with load, pods and history")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--grown", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.grown:
        print(json.dumps(grown(**json.loads(arguments.grown))))
        return
    if arguments.growth:
        show_growth()
        return
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    print(f"{'application':<30}{'start':>8}{'deploy':>8}{'15 min':>8}{'up':>8}{'virtual s/s':>13}{'MB':>8}")
    for name in arguments.applications:
        done = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name:<30}{(done.stderr.strip().splitlines() or ['failed'])[-1]}")
            continue
        row = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{name:<30}{row['start']:>8.2f}{row['deploy']:>8.2f}{row['15 minutes']:>8.2f}{row['up']:>8.2f}"
            f"{row['virtual seconds per second']:>13.0f}{row['MB after an hour']:>8.0f}"
        )


if __name__ == "__main__":
    main()
