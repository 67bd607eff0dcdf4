"""How quick and how large the tools over a recorded incident are.

    python benchmarks/snapshots.py                 a tenth of the size below
    python benchmarks/snapshots.py --scale 1       300,000 spans, 200,000 logs, 12,000 objects, 440 MB of metrics

Generates a snapshot in the raw layout, then measures, in a process of its own: reading the files once, first touch of
every table, each tool warm (the worst of ten calls), and the most memory used.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

SERVICES = [f"svc-{index}" for index in range(20)]
START = datetime(2025, 6, 1, 10, tzinfo=UTC)
LOG_HEADER = (
    "Timestamp\tTraceId\tSpanId\tSeverityText\tSeverityNumber\tServiceName\tBody\tResourceAttributes\tLogAttributes\n"
)
SPAN_HEADER = (
    "Timestamp\tTraceId\tSpanId\tParentSpanId\tSpanName\tSpanKind\tServiceName\tResourceAttributes\tSpanAttributes\t"
    "Duration\tStatusCode\tStatusMessage\n"
)
MORE = "{'telemetry.sdk.name': 'opentelemetry', 'http.route': '/api/products/{id}', 'net.peer.name': '10.0.0.1', "


def _stamp(second: float) -> str:
    return (START + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S.%f") + "123"


def _attributes(service: str) -> str:
    return MORE + f"'k8s.namespace.name': 'shop', 'k8s.pod.name': '{service}-7f9c-abcde'}}"


def generate(root: Path, scale: float) -> None:
    rng = random.Random(0)
    (root / "alerts").mkdir(parents=True)
    (root / "metrics").mkdir()
    for minute in range(60):
        name = (START + timedelta(minutes=minute)).strftime("alerts_at_%Y-%m-%dT%H-%M-%S.000000.json")
        alert = {"labels": {"alertname": "RequestErrorRate", "service_name": "svc-3"}, "state": "firing"}
        active = (START + timedelta(minutes=31)).strftime("%Y-%m-%dT%H:%M:%SZ")
        found = [{**alert, "activeAt": active}] if minute > 31 else []
        (root / "alerts" / name).write_text(json.dumps(found))
    traces = int(30_000 * scale)
    with (root / "otel_traces_raw.tsv").open("w") as out:
        out.write(SPAN_HEADER)
        for trace in range(traces):
            second = 3600 * trace / traces
            for depth in range(10):
                service = SERVICES[(trace + depth) % 20]
                bad = second > 1800 and service == "svc-3"
                parent = f"{trace:012x}{depth - 1:04x}" if depth else ""
                cells = [_stamp(second), f"{trace:032x}", f"{trace:012x}{depth:04x}", parent, f"op {service}", "Server"]
                cells += [service, _attributes(service), _attributes(service), str(rng.randrange(10**6, 10**8))]
                out.write("\t".join([*cells, "Error" if bad else "Unset", "refused" if bad else ""]) + "\n")
    with (root / "otel_logs_raw.tsv").open("w") as out:
        out.write(LOG_HEADER)
        for index in range(int(200_000 * scale)):
            service = SERVICES[index % 20]
            body = f"request {index} of user {rng.randrange(10**6)} handled in {rng.random():.3f} s by {service}"
            level = "ERROR\t17" if index % 50 == 0 else "INFO\t9"
            cells = [_stamp(3600 * index / (200_000 * scale)), f"{index:032x}", "", level, service, body * 3]
            out.write("\t".join([*cells, _attributes(service), "{'a': 'b'}"]) + "\n")
    with (root / "k8s_objects_raw.tsv").open("w") as out:
        out.write("Timestamp\tBody\n")
        looks = max(2, int(12 * scale))
        for look in range(looks):
            for index in range(1000):
                image = "shop:2" if index == 3 and look > looks // 2 else "shop:1"
                body = {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": f"svc-{index}", "namespace": "shop", "resourceVersion": str(look)},
                    "spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}, "x": "y" * 2000},
                    "status": {"observedGeneration": look},
                }
                text = json.dumps(body).replace('"', '""')
                out.write(f'{_stamp(3600 * look / looks)}\t"{text}"\n')
    with (root / "k8s_events_raw.tsv").open("w") as out:
        out.write("Timestamp\tBody\n")
    tags = "{'pod': 'x', 'namespace': 'shop', 'container': 'main', 'node': 'node-1', 'id': '/kubepods/x'}"
    for service in SERVICES:
        pod = f"{service}-7f9c-abcde"
        with (root / "metrics" / f"pod_{pod}_raw.tsv").open("w") as out:
            out.write("metric_name\ttimestamp\tvalue\tpod_name\tnamespace\ttags\n")
            for metric in range(int(500 * scale)):
                for minute in range(240):
                    stamp = _stamp(15 * minute)
                    out.write(f"metric_{metric}_bytes\t{stamp}\t{rng.random() * 1e6:.3f}\t{pod}\tshop\t{tags}\n")


CALLS: dict[str, dict[str, str]] = {
    "get_metric_anomalies": {"k8_object_name": "Pod/svc-3-7f9c-abcde"},
    "metric_analysis": {"k8_object_name": "Pod/svc-3-7f9c-abcde"},
    "topology_analysis": {"entity": "svc-3"},
    "get_k8_spec": {"k8_object_name": "shop/Deployment/svc-3"},
    "get_context_contract": {"k8_object": "shop/Deployment/svc-3"},
}


def measure(root: Path, cache: Path) -> None:
    from sre_tools.offline_incident_analysis import Workspace, all_tools, call_tool

    files = [path for path in root.rglob("*") if path.is_file()]
    begun = time.perf_counter()
    for path in files:
        with path.open("rb") as handle:
            while handle.read(1 << 20):
                pass
    size = sum(path.stat().st_size for path in files) / 1e6
    print(f"{size:.0f} MB in {len(files)} files, read once in {time.perf_counter() - begun:.2f} s")
    with Workspace(root, cache=cache) as workspace:
        begun = time.perf_counter()
        snapshot = workspace.snapshot()
        for table in ("alerts", "events", "objects", "logs", "spans", "metrics"):
            snapshot.table(table)
        print(f"first touch of all tables: {time.perf_counter() - begun:.2f} s")
        for name in all_tools():
            took = []
            for _ in range(11):
                begun = time.perf_counter()
                reply = call_tool(workspace, name, CALLS.get(name))
                took.append(1000 * (time.perf_counter() - begun))
            length = len(json.dumps(reply))
            print(f"{name:<26} first {took[0]:7.0f} ms   worst of ten warm {max(took[1:]):6.0f} ms   {length:6d} chars")
    print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure / "Scenario-1", arguments.measure / "cache")
        return
    with tempfile.TemporaryDirectory() as place:
        generate(Path(place) / "Scenario-1", arguments.scale)
        subprocess.run([sys.executable, __file__, "--measure", place], check=True)


if __name__ == "__main__":
    main()
