"""Runs on a real Ray cluster of several nodes, one of which is killed half-way."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.leaderboard.incidents import make_snapshots, write_configuration

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'srearena[ray]'"
)
ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)
def test_a_node_lost_half_way_loses_no_run(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # 15 by default: on a busy machine its workers would get no turn
        "SREARENA_CACHE": str(tmp_path / "cache"),
    }
    make_snapshots(tmp_path / "snapshots", 2)
    config = write_configuration(tmp_path, agents=("good", "fair"), runs=2)
    nodes = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("ray_nodes.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    assert nodes.stdin is not None and nodes.stdout is not None
    try:
        address = nodes.stdout.readline().strip()
        if not address:
            pytest.skip("a Ray node did not start within Ray's own 30 seconds: this machine is too busy")
        command = ["--config", str(config), "--executor", "ray", "--ray-address", address, "--parallel", "3"]
        board = subprocess.Popen(
            [sys.executable, "-m", "itbench_leaderboard", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert board.stderr is not None
        said = [board.stderr.readline()]  # the first run has ended; others are under way
        nodes.stdin.write("\n")
        nodes.stdin.flush()
        with board.stderr:
            said += board.stderr.readlines()
        assert board.wait() == 0, "".join(said)
    finally:
        nodes.stdin.close()
        nodes.wait()
        nodes.stdout.close()
    document = json.loads((tmp_path / "leaderboard_results" / "results" / "leaderboard.json").read_text())
    assert {row["agent"]: row["score"] for row in document["rankings"]} == {"good": 1.0, "fair": 0.5}
    assert all(row["outcomes"] == {"answered": 4} for row in document["rankings"])
    run = tmp_path / "leaderboard_results/good/Scenario-1/1/traces"
    assert (run / "trajectory.json").is_file()
    # Prompt and recordings came as parcels, the recordings without their answer keys.
    assert str(tmp_path / "cache" / "shipped") in json.loads((run / "run.json").read_text())["prompt"]
    shipped = {path.name for path in (tmp_path / "cache" / "shipped").glob("*/*")}
    assert shipped == {"Scenario-1", "Scenario-2", "prompt.md"}
    assert list((tmp_path / "cache" / "shipped").rglob("ground_truth*")) == []
