"""The observer on a real Prometheus, where one is installed."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from srearena.observer import MetricApi, Window

pytestmark = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")), reason="Prometheus is not installed"
)
START = 1_700_000_000
COUNT = 600
SAMPLES = "\n".join(
    ["# TYPE jobs gauge"]
    + [f'jobs{{queue="{queue}"}} {n + 1000 * queue} {START + 15 * n}' for queue in range(3) for n in range(COUNT)]
    + ["# EOF\n"]
)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "samples").write_text(SAMPLES)
    (folder / "prometheus.yml").write_text("{}")
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", folder / "samples", folder / "data"],
        check=True,
        capture_output=True,
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                "--storage.tsdb.retention.time=100y",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        _wait_until_ready(f"http://{address}")
        yield f"http://{address}"
    finally:
        server.terminate()
        server.wait()


def _wait_until_ready(url: str) -> None:
    for _ in range(300):
        try:
            if httpx.get(f"{url}/-/ready").status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError("Prometheus did not get ready")


def test_every_sample_once(prometheus: str, tmp_path: Path) -> None:
    with MetricApi(prometheus) as api:
        window = Window(START - 1, START + 15 * COUNT)
        assert api.names(window) == ["jobs"]
        rows = list(api.samples(window))
        assert len(rows) == 3 * COUNT
        assert {row["value"] for row in rows} == {float(n + 1000 * queue) for queue in range(3) for n in range(COUNT)}
        assert api.export(window, tmp_path, "csv").rows == 3 * COUNT
        points = list(api.results(Window(START, START + 150), "sum(jobs)", 15))
        assert [row["value"] for row in points] == [3000.0 + 3 * n for n in range(11)]
