"""The real kube-state-metrics beside ours: runs it on a cluster's API, and records what it said about which objects.

`python -m tests.collectors.real_kube_state` writes the recording that the parity test reads; it needs the program
`kube-state-metrics` on the PATH (built from its Go module, version 2.15).
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import yaml

from srearena.cluster.embedded.assembly import assemble
from srearena.cluster.embedded.options import ClusterOptions
from srearena.cluster.embedded.telemetry.collectors.kube_state.collector import KINDS
from tests.clusters import running

PROGRAM = shutil.which("kube-state-metrics")
HERE = Path(__file__).parent
RECORDING = HERE / "golden" / "kube_state.json.gz"
_LINE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Samples = dict[tuple[tuple[str, str], ...], float]


def parsed(exposition: str) -> Samples:
    """Samples of a text exposition; empty labels are no labels, as for Prometheus."""
    found: Samples = {}
    for line in exposition.splitlines():
        match = None if line.startswith("#") else _LINE.match(line)
        if match is None:
            continue
        labels = {key: value for key, value in _LABEL.findall(match[2] or "") if value}
        found[tuple(sorted({"__name__": match[1], **labels}.items()))] = float(match[3])
    return found


def types(exposition: str) -> dict[str, str]:
    """Names and types of the families of a text exposition."""
    return dict(line.split()[2:4] for line in exposition.splitlines() if line.startswith("# TYPE"))  # type: ignore[misc]


def ours(objects: Mapping[str, list[Any]]) -> Samples:
    """What our tables say about objects."""
    found: Samples = {}
    for kind in KINDS:
        for obj in objects.get(kind.resource, ()):
            for labels, value in zip(*kind.series(obj), strict=True):
                key = tuple(sorted(labels.items()))
                assert key not in found, f"twice: {key}"
                found[key] = value
    return found


def menagerie() -> list[Any]:
    return [doc for doc in yaml.safe_load_all((HERE / "menagerie.yaml").read_text()) if doc]


def record() -> tuple[dict[str, list[Any]], str]:
    """Objects of a cluster with one of everything, and what the real program makes of them."""
    assert PROGRAM is not None
    assembly = assemble(ClusterOptions(seed=7, workers=1, start=time.time()))
    with running(assembly.world, speed=0, agent=assembly.nodes.agent) as api:
        api.kubectl("apply", "-f", str(HERE / "menagerie.yaml"))
        api.advance(120)
        text = _scraped(api.kubeconfig)
        store = assembly.world.store
        return {kind.resource: store.objects(kind.resource) for kind in KINDS}, text


def _scraped(kubeconfig: Path) -> str:
    with socket.socket() as free, socket.socket() as other:
        free.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, second = free.getsockname()[1], other.getsockname()[1]
    arguments = [f"--kubeconfig={kubeconfig}", "--host=127.0.0.1", f"--port={port}"]
    arguments += ["--telemetry-host=127.0.0.1", f"--telemetry-port={second}"]
    process = subprocess.Popen([str(PROGRAM), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return _settled(f"http://127.0.0.1:{port}/metrics")
    finally:
        process.terminate()
        process.wait()


def _settled(url: str) -> str:
    """The page, once it has stopped growing."""
    before = ""
    for _ in range(60):
        time.sleep(0.5)
        try:
            page = httpx.get(url, timeout=10).text
        except httpx.HTTPError:
            continue
        if page == before and "kube_pod_info{" in page and "kube_node_info{" in page:
            return page
        before = page
    raise AssertionError("kube-state-metrics did not settle")


def recorded() -> tuple[dict[str, list[Any]], str]:
    kept = json.loads(gzip.decompress(RECORDING.read_bytes()))
    return kept["objects"], kept["metrics"]


if __name__ == "__main__":
    objects, metrics = record()
    plain = "\n".join(line for line in metrics.splitlines() if not line.startswith("# HELP"))
    kept = json.dumps({"objects": objects, "metrics": plain}, sort_keys=True)
    RECORDING.write_bytes(gzip.compress(kept.encode(), mtime=0))
