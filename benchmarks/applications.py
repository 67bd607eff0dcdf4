"""What living applications cost: bringing one up with a past, virtual seconds per second, memory, and how it grows.

    python benchmarks/applications.py [APP ...]

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("applications", nargs="*", default=list(APPLICATIONS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
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
