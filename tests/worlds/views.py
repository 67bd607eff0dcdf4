"""Everything that a client can read of an episode's world, as text: objects, metrics, logs, traces and alerts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx

from srearena.conductor.worlds import EpisodeProcess
from srearena.service.kubernetes import Kubernetes

START = 1_767_225_600.0  # 2026-01-01T00:00:00Z
LISTS = (
    "/api/v1/pods",
    "/api/v1/events",
    "/api/v1/services",
    "/api/v1/nodes",
    "/api/v1/configmaps",
    "/api/v1/endpoints",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/daemonsets",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/coordination.k8s.io/v1/leases",
)
WINDOW = {"start": str(int(START - 3600)), "end": str(int(START + 3600))}
MICROSECONDS = {key: f"{value}000000" for key, value in WINDOW.items()}
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----|certificate-authority-data: \S+")
"""Of the cluster's authority: its key is drawn for every cluster, whatever the seed."""


def views(episode: EpisodeProcess) -> dict[str, str]:
    addresses = episode.connect()
    with Kubernetes(Path(addresses["kubeconfig"])) as api:
        texts = {path: _CERTIFICATE.sub("", json.dumps(api.raw(path))) for path in LISTS}
    headers = {"Authorization": f"Bearer {addresses['telemetry_token']}"}
    with httpx.Client(headers=headers, trust_env=False, timeout=60) as client:

        def read(url: str, **parameters: Any) -> str:
            answer = client.get(url, params=parameters)
            assert answer.status_code == 200, answer.text
            return answer.text

        texts["metrics"] = read(f"{addresses['prometheus']}/api/v1/query", query='{__name__=~".+"}')
        texts["alerts"] = read(f"{addresses['prometheus']}/api/v1/alerts")
        loki = f"{addresses['loki']}/loki/api/v1/query_range"
        nanoseconds = {key: f"{value}000000000" for key, value in WINDOW.items()}
        texts["logs"] = read(loki, query='{namespace=~".+"}', limit="5000", **nanoseconds)
        for service in sorted(json.loads(read(f"{addresses['jaeger']}/api/services"))["data"]):
            texts[f"traces of {service}"] = read(f"{addresses['jaeger']}/api/traces", service=service, **MICROSECONDS)
    return texts


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """The names of the views in which two worlds differ."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
