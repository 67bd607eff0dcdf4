"""Runs on a real Ray cluster of several nodes, one of which is killed half-way."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import pytest

from itbench_leaderboard.cli import main
from tests.leaderboard.incidents import make_snapshots, write_configuration
from tests.ray_cluster import ray_environment, ray_nodes

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'srearena[ray]'"
)
BOARD = (sys.executable, "-m", "itbench_leaderboard", "--executor", "ray")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return ray_environment(tmp_path)


@contextmanager
def campaign(environment: dict[str, str], config: Path, *options: str) -> Iterator[IO[str]]:
    """What the leaderboard says while it runs; at the end it has ended well."""
    board = subprocess.Popen(
        [*BOARD, "--config", str(config), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert board.stderr is not None
    with board.stderr:
        try:
            yield board.stderr
            output = board.stderr.read()
        except BaseException:
            board.kill()
            board.wait()
            raise
    assert board.wait() == 0, output


def leaderboard(place: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((place / "leaderboard_results" / "results" / "leaderboard.json").read_text())
    return document


@pytest.mark.timeout(600)
def test_a_node_lost_half_way_loses_no_run(tmp_path: Path, environment: dict[str, str]) -> None:
    make_snapshots(tmp_path / "snapshots", 2)
    config = write_configuration(tmp_path, agents=("good", "fair"), runs=2)
    with (
        ray_nodes(environment, {}, {}) as (address, lose),
        campaign(environment, config, "--ray-address", address, "--parallel", "3") as output,
    ):
        output.readline()  # the first run has ended; others are under way
        lose()
    document = leaderboard(tmp_path)
    assert {row["agent"]: row["score"] for row in document["rankings"]} == {"good": 1.0, "fair": 0.5}
    assert all(row["outcomes"] == {"answered": 4} for row in document["rankings"])
    run = tmp_path / "leaderboard_results/good/Scenario-1/1/traces"
    assert (run / "trajectory.json").is_file()
    # Prompt and recordings came as bundles, the recordings without their answer keys.
    assert str(tmp_path / "cache" / "shipped") in json.loads((run / "run.json").read_text())["prompt"]
    shipped = {path.name for path in (tmp_path / "cache" / "shipped").glob("*/*")}
    assert shipped == {"Scenario-1", "Scenario-2", "prompt.md"}
    assert list((tmp_path / "cache" / "shipped").rglob("ground_truth*")) == []


@pytest.mark.timeout(600)
def test_runs_wait_for_the_resources_they_ask_for(tmp_path: Path, environment: dict[str, str]) -> None:
    make_snapshots(tmp_path / "snapshots", 1)
    config = write_configuration(tmp_path, agents=("good",), runs=3)
    # An agent that notes when it was at work, long enough for two of them to meet if they could.
    times = tmp_path / "times"
    times.mkdir()
    program = tmp_path / "agent.py"
    program.write_text(
        "import os, pathlib, time\nbegun = time.monotonic()\ntime.sleep(1.5)\n"
        + program.read_text()
        + f"\npathlib.Path({str(times)!r}, str(os.getpid())).write_text(f'{{begun}} {{time.monotonic()}}')\n"
    )
    caches = {name: tmp_path / name for name in ("plain", "bench")}
    plain, bench = ({"num_cpus": 2, "env_vars": {"SREARENA_CACHE": str(cache)}} for cache in caches.values())
    # Processors for four at once, but the resource is on one node, and enough for one run at a time.
    with (
        ray_nodes(environment, plain, {**bench, "resources": {"licence": 1}}) as (address, _),
        campaign(
            environment,
            config,
            *("--ray-address", address, "--parallel", "3", "--ray-cpus", "0.5", "--ray-resources", "licence=1"),
        ),
    ):
        pass
    assert leaderboard(tmp_path)["rankings"][0]["outcomes"] == {"answered": 3}
    spans = sorted(tuple(map(float, path.read_text().split())) for path in times.iterdir())
    assert len(spans) == 3
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans)), spans
    # What is sent along comes to the machines that work: here to the one with the resource.
    assert list(caches["bench"].glob("shipped/*/Scenario-1"))
    assert not caches["plain"].exists()


@pytest.mark.timeout(600)
def test_resources_that_no_node_has_are_named_and_waiting_for_them_can_be_ended(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    make_snapshots(tmp_path / "snapshots", 1)
    config = write_configuration(tmp_path, agents=("good",), runs=1)
    with ray_nodes(environment, {}) as (address, _):
        command = (*BOARD, "--config", str(config), "--ray-address", address, "--ray-resources", "licence=2")
        board = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert board.stderr is not None
        with board.stderr:
            assert "no node of the Ray cluster has what a run asks for (CPU=1, licence=2)" in board.stderr.readline()
            board.terminate()
            rest = board.stderr.read()
        assert board.wait() == 130, rest
    assert "stopped: the same command resumes" in rest


@pytest.mark.parametrize("resources", ["licence=many", "licence=", "=1", "licence=-1", "licence=nan", "licence=0"])
def test_resources_that_are_none_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], resources: str
) -> None:
    make_snapshots(tmp_path / "snapshots", 1)
    config = write_configuration(tmp_path, agents=("good",), runs=1)
    code = main(["--config", str(config), "--executor", "ray", "--ray-resources", resources, "--no-connection-test"])
    assert code == 1
    assert f"--ray-resources {resources}: expected NAME=N" in capsys.readouterr().err
