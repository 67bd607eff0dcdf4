"""A recorded incident of any size, generated: what `benchmarks/sre_tools.py` measures the tools on.

At scale 1 it has 300,000 spans (210 MB), 200,000 log lines (120 MB), 1,000 objects looked at twelve times (30 MB) and
2.4 million samples (440 MB) of an hour. A larger scale is a larger cluster under more traffic in the same hour: more
pods of each service, more objects, more requests. Below 1, pods have fewer metrics instead.

Half an hour in, `svc-3` gets a bad image: its requests fail, its pods restart, its metrics step.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SERVICES = [f"svc-{index}" for index in range(20)]
BAD = "svc-3"
START = datetime(2025, 6, 1, 10, tzinfo=UTC)
SECONDS, BROKEN, LOOKS = 3600, 1800, 12
LOG_HEADER = (
    "Timestamp\tTimestampTime\tTraceId\tSpanId\tSeverityText\tSeverityNumber\tServiceName\tBody\tResourceAttributes\t"
    "LogAttributes\n"
)
SPAN_HEADER = (
    "Timestamp\tTraceId\tSpanId\tParentSpanId\tSpanName\tSpanKind\tServiceName\tResourceAttributes\tSpanAttributes\t"
    "Duration\tStatusCode\tStatusMessage\n"
)
METRIC_HEADER = "metric_name\ttimestamp\tvalue\tpod_name\tnamespace\ttags\n"
VERBS = "handled rejected cached forwarded stored validated parsed encoded refreshed expired".split()
THINGS = "request order session token payload cart invoice image message quote".split()


def _stamp(second: float) -> str:
    return (START + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S.%f") + "123"


def _zulu(second: float) -> str:
    return (START + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod_of(service: str, replica: int = 0) -> str:
    return f"{service}-7f9c4d5b6-{replica:05x}"


def _resource(service: str, pod: str) -> str:
    return (
        "{'service.name': '" + service + "', 'k8s.namespace.name': 'shop', 'k8s.pod.name': '" + pod + "', "
        "'telemetry.sdk.name': 'opentelemetry', 'telemetry.sdk.language': 'go', 'k8s.node.name': 'node-1'}"
    )


def _spans(root: Path, traces: int, replicas: int, rng: random.Random) -> None:
    more = (
        "'rpc.system': 'grpc', 'rpc.service': 'shop.Api', 'net.peer.name': '10.0.0.1', 'net.peer.port': '8080', "
        "'http.route': '/api/products/{id}', 'user_agent.original': 'python-requests/2.31', 'http.status_code': '200', "
        "'url.full': 'http://frontend-proxy:8080/api/products/OLJCEXPF', 'session.id': 'a5c1e8f0-0d1e-4b7c-9f0a'}"
    )
    resources = [[_resource(s, pod_of(s, r)) for r in range(replicas)] for s in SERVICES]
    with (root / "otel_traces_raw.tsv").open("w") as out:
        out.write(SPAN_HEADER)
        for trace in range(traces):
            second = SECONDS * trace / traces
            stamp, trace_id, parent = _stamp(second), f"{rng.getrandbits(128):032x}", ""
            lines = []
            for depth in range(10):
                number = (trace + depth) % 20
                service = SERVICES[number]
                bad = second > BROKEN and service == BAD
                span = f"{rng.getrandbits(64):016x}"
                verdict = "Error\tconnection refused" if bad else "Unset\t"
                took = rng.randrange(10**6, 10**7) * (10 - depth)
                lines.append(
                    f"{stamp}\t{trace_id}\t{span}\t{parent}\top {service}\tServer\t{service}\t"
                    f"{resources[number][trace % replicas]}\t{{'request.id': '{trace}', {more}\t{took}\t{verdict}\n"
                )
                parent = span
            out.writelines(lines)


def _logs(root: Path, count: int, replicas: int, rng: random.Random) -> None:
    with (root / "otel_logs_raw.tsv").open("w") as out:
        out.write(LOG_HEADER)
        for index in range(count):
            second = SECONDS * index / count
            service = SERVICES[index % 20]
            error = (second > BROKEN and service == BAD) or index % 997 == 0
            verb = VERBS[rng.randrange(10)]
            body = (
                f"{verb} {THINGS[rng.randrange(10)]} {rng.getrandbits(64):016x} of user {rng.randrange(10**6)} in "
                f"{rng.random():.3f} s: upstream 10.0.{index % 200}.{index % 250}:8080 answered with "
                f"{rng.randrange(10**5)} bytes"
            )
            if error:
                body = f"could not reach payment: dial tcp 10.0.0.{index % 200}:8080: connection refused"
            stamp = _stamp(second)
            out.write(
                f"{stamp}\t{stamp[:19]}\t{rng.getrandbits(128):032x}\t\t{'ERROR' if error else 'INFO'}\t"
                f"{17 if error else 9}\t{service}\t{body}\t{_resource(service, pod_of(service, index % replicas))}\t"
                f"{{'code.function': 'serve', 'thread.name': 'worker-{index % 16}', 'logger': 'shop.{service}', "
                f"'code.file.path': '/src/shop/server.go', 'code.line.number': '211'}}\n"
            )


def _objects(count: int, replicas: int) -> list[dict[str, Any]]:
    """The cluster at one look: services, workloads, pods, and configuration up to the count asked for."""
    found: list[dict[str, Any]] = []

    def add(kind: str, name: str, spec: dict[str, Any], owner: tuple[str, str] | None = None) -> None:
        meta: dict[str, Any] = {"name": name, "namespace": "shop", "uid": f"uid-{kind}-{name}"}
        meta["labels"] = {"app": name.partition("-7f9c")[0]}
        if owner:
            meta["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
        found.append({"apiVersion": "v1", "kind": kind, "metadata": meta, **spec})

    filler = [{"name": f"SETTING_{index}", "value": f"value of setting {index}"} for index in range(30)]
    for service in SERVICES:
        labels, container = {"app": service}, {"name": "main", "image": "shop:1", "env": filler}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        add("Service", service, {"spec": {"selector": labels, "ports": [{"port": 8080}]}})
        add("Deployment", service, {"spec": {"replicas": replicas, "template": template}})
        add("ReplicaSet", f"{service}-7f9c4d5b6", {"spec": {"template": template}}, ("Deployment", service))
        for replica in range(replicas):
            owner = ("ReplicaSet", f"{service}-7f9c4d5b6")
            add("Pod", pod_of(service, replica), {"spec": {"nodeName": "node-1", "containers": [container]}}, owner)
    for index in range(count - len(found)):
        add("ConfigMap", f"config-{index}", {"data": {f"key-{n}": "y" * 70 for n in range(26)}})
    return found[: max(count, 80)]


def _looks(root: Path, count: int, replicas: int) -> None:
    with (root / "k8s_objects_raw.tsv").open("w") as out:
        out.write("Timestamp\tBody\n")
        objects = _objects(count, replicas)
        for look in range(LOOKS):
            second = SECONDS * look / LOOKS
            for index, item in enumerate(objects):
                item["metadata"]["resourceVersion"] = str(1000 * look + index)
                item["status"] = {"observedGeneration": look, "lastUpdateTime": _zulu(second)}
                if second >= BROKEN and (item["kind"], item["metadata"]["name"]) == ("Deployment", BAD):
                    container = item["spec"]["template"]["spec"]["containers"][0]
                    item["spec"]["template"]["spec"]["containers"] = [{**container, "image": "shop:2"}]
                if item["kind"] == "ConfigMap" and index % 20 == look:
                    item["data"]["key-0"] = f"changed at look {look}"
                body = json.dumps(item).replace('"', '""')
                out.write(f'{_stamp(second)}\t"{body}"\n')


def _events(root: Path, count: int, replicas: int) -> None:
    with (root / "k8s_events_raw.tsv").open("w") as out:
        out.write("Timestamp\tBody\n")
        for index in range(count):
            second = SECONDS * index / count
            bad = second > BROKEN and index % 4 == 0
            pod = pod_of(BAD if bad else SERVICES[index % 20], index % replicas)
            event = {
                "metadata": {"name": f"{pod}.{index}", "namespace": "shop", "uid": f"event-{index}"},
                "involvedObject": {"kind": "Pod", "name": pod, "namespace": "shop"},
                "reason": "BackOff" if bad else "Pulled",
                "type": "Warning" if bad else "Normal",
                "message": "Back-off restarting failed container" if bad else "Container image already present",
                "lastTimestamp": _zulu(second),
                "count": 1 + index % 5,
                "source": {"component": "kubelet"},
            }
            body = json.dumps({"type": "ADDED", "object": event}).replace('"', '""')
            out.write(f'{_stamp(second)}\t"{body}"\n')


def _metrics(root: Path, each: int, replicas: int, rng: random.Random) -> None:
    stamps = [_zulu(second) for second in range(0, SECONDS, 15)]
    half = len(stamps) // 2
    for service in SERVICES:
        for replica in range(replicas):
            pod = pod_of(service, replica)
            with (root / "metrics" / f"pod_{pod}_raw.tsv").open("w") as out:
                out.write(METRIC_HEADER)
                for metric in range(each):
                    name = f"container_figure_{metric}_{'total' if metric % 2 else 'bytes'}"
                    tags = (
                        f"{{'pod': '{pod}', 'namespace': 'shop', 'container': 'main', 'node': 'node-1', "
                        f"'job': 'kubelet'}}"
                    )
                    rest = f"\t{pod}\tshop\t{tags}\n"
                    level, total = 1e6 * rng.random(), 0.0
                    for index, stamp in enumerate(stamps):
                        value = level * (1 + 0.1 * rng.random())
                        if service == BAD and metric < 20 and index >= half:
                            value *= 3
                        total += value
                        out.write(f"{name}\t{stamp}\t{total if metric % 2 else value:.3f}{rest}")


def _alerts(root: Path) -> None:
    for minute in range(60):
        name = (START + timedelta(minutes=minute)).strftime("alerts_at_%Y-%m-%dT%H-%M-%S.000000.json")
        alert = {"labels": {"alertname": "RequestErrorRate", "service_name": BAD}, "state": "firing"}
        found = [{**alert, "activeAt": _zulu(BROKEN + 60)}] if minute > 31 else []
        (root / "alerts" / name).write_text(json.dumps(found))


def generate(root: Path, scale: float) -> None:
    """Write the incident at `root`, which must not exist; the same scale gives the same files."""
    rng = random.Random(0)
    draft = root.with_name(f".{root.name}")
    (draft / "alerts").mkdir(parents=True)
    (draft / "metrics").mkdir()
    replicas = max(1, round(scale))
    _alerts(draft)
    _spans(draft, int(30_000 * scale), replicas, rng)
    _logs(draft, int(200_000 * scale), replicas, rng)
    _looks(draft, int(1000 * scale), replicas)
    _events(draft, int(2000 * scale), replicas)
    _metrics(draft, max(1, int(500 * min(scale, 1))), replicas, rng)
    draft.rename(root)


CALLS: dict[str, dict[str, str]] = {
    "get_metric_anomalies": {"k8_object_name": f"Deployment/{BAD}"},
    "topology_analysis": {"entity": BAD},
    "get_k8_spec": {"k8_object_name": f"shop/Deployment/{BAD}"},
    "get_context_contract": {"k8_object": f"shop/Deployment/{BAD}"},
}
"""Arguments of the tools that require some; all others are called without."""
