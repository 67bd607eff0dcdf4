"""Runs and proofs on a real Ray cluster of several nodes, one of which is killed half-way."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from srearena.cli import cli
from srearena.conductor.trials.remote import chunks_of
from srearena.interpreters import python_module
from tests.kubectl.operator import KUBECTL
from tests.ray_cluster import ray_environment, ray_nodes

ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'srearena[ray]'"
)
PROBLEMS = ("noop_hotel_reservation", "wrong_service_selector_hotel_reservation")


def rows(output: str) -> list[dict[str, Any]]:
    lines = output.splitlines()
    assert all(line.startswith("{") for line in lines), output
    return [json.loads(line) for line in lines]


def command(*words: str) -> Sequence[str]:
    return python_module("srearena", *words)


@ray
@pytest.mark.kubectl
@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
@pytest.mark.timeout(900)
def test_a_node_lost_half_way_loses_no_trial_and_proofs_run_there_too(tmp_path: Path) -> None:
    environment = {**ray_environment(tmp_path), "SREARENA_RESULTS": str(tmp_path / "results")}
    script = tmp_path / "answers.txt"
    script.write_text('get_alerts()\n\nsubmit("Yes")\n')
    with ray_nodes(environment, {}, {}) as (address, lose):
        where = ("--executor", "ray", "--ray-address", address)
        words = (
            "--agent",
            "scripted",
            "--script",
            str(script),
            "--stages",
            "detection",
            "--trials",
            "2",
            "--seed",
            "3",
        )
        run = command("run", *PROBLEMS, *words, "--run", "far", "--json", *where)
        with subprocess.Popen(
            run, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as started:
            assert started.stdout is not None and started.stderr is not None
            first = started.stdout.readline()
            lose()  # others are under way
            rest, errors = started.stdout.read(), started.stderr.read()
        assert started.returncode == 0, errors
        *trials, totals = rows(first + rest)
        assert {(one["problem"], one["trial"]): one["outcome"] for one in trials} == {
            (problem, number): "fail" if problem.startswith("noop") else "pass"
            for problem in PROBLEMS
            for number in (0, 1)
        }
        assert totals["trials"] == 4
        folder = tmp_path / "results" / "far" / "trials" / PROBLEMS[1] / "1"
        assert "get_alerts()" in (folder / "session.jsonl").read_text()
        assert json.loads((folder / "result.json").read_text())["run"] == "far"
        again = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
        assert all(one["earlier_run"] for one in rows(again.stdout)[:-1])
        verify = command("verify", "--runs", PROBLEMS[1], "--json", *where)
        proven = subprocess.run(verify, env=environment, capture_output=True, text=True, check=False)
        assert [one["valid"] for one in rows(proven.stdout)] == [True], proven.stderr


def test_what_ray_prints_is_not_taken_for_our_output() -> None:
    code = """
import os, threading
from srearena.ray_machines import take_output
take_output()
take_output()
os.write(1, b"native code of Ray\\n")
listener = threading.Thread(target=print, args=("a thread of Ray",), name="ray_listen_error_messages")
listener.start()
listener.join()
print("ours")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "ours\n"
    assert done.stderr == "native code of Ray\na thread of Ray\n"


def test_what_shares_a_system_goes_to_one_machine_in_chunks_that_keep_all_busy() -> None:
    items = {f"{system}{number}": system for system, count in (("a", 20), ("b", 3)) for number in range(count)}
    for machines in (1, 2, 5, 100):
        chunks = chunks_of(items, str, machines)
        assert [name for chunk in chunks for name in chunk] == list(items)
        assert all(len(set(chunk.values())) == 1 for chunk in chunks)
        assert len(chunks) >= min(machines, len(items))
    assert max(map(len, chunks_of(items, str, 1))) == 8


def test_what_ray_cannot_do_is_refused() -> None:
    for words, reason in (
        (("run", PROBLEMS[0], "--budget-usd", "1", "--agent", "nothing"), "use --max-cost"),
        (("run", PROBLEMS[0], "--backend", "kubernetes"), "on this machine"),
        (("verify", PROBLEMS[0], "--backend", "kubernetes"), "on this machine"),
    ):
        done = CliRunner().invoke(cli, [*words, "--executor", "ray"])
        assert done.exit_code == 1 and reason in str(done.exception), (done.output, done.exception)
