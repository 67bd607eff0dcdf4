"""Processes that an agent leaves behind in the application's containers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from srearena.conductor.oracles.checks import Processes
from srearena.conductor.oracles.checks.processes import _foreign, _parsed, _Process, _processes
from srearena.conductor.problems.target_port import TargetPort
from srearena.service.kubernetes import Kubernetes
from srearena.service.remote_command import CommandResult
from tests.arena.episodes import prepared_episode, shop_problem
from tests.arena.test_decoys import SHOP, agent_of

POSTGRES = _Process(1, 0, 1, 100, "/usr/lib/postgresql/16/bin/postgres", "postgres -D /data")
PYTHON = _Process(1, 0, 1, 100, "/usr/bin/python3.12", "python app.py")


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (POSTGRES, _Process(80, 1, 80, 900, POSTGRES.program, "postgres: shop accounting idle", same=True)),
        (PYTHON, _Process(9, 1, 1, 120, "/bin/sh", "sh -c ./refresh")),
        (PYTHON, _Process(9, 1, 9, 120, PYTHON.program, PYTHON.command, same=True)),
    ],
    ids=["a backend in a session of its own", "a child", "a worker"],
)
def test_processes_of_the_image_belong_to_it(first: _Process, other: _Process) -> None:
    assert _foreign([first, other]) == []


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (POSTGRES, _Process(90, 1, 80, 900, "/bin/sleep", "sleep 40")),
        (POSTGRES, _Process(90, 1, 80, 900, "/tmp/postgres", "postgres: shop accounting idle")),
        (POSTGRES, _Process(90, 1, 80, 900, POSTGRES.program, "postgres: shop accounting idle")),
        (PYTHON, _Process(90, 1, 80, 900, PYTHON.program, "python -c import time", same=True)),
        (PYTHON, _parsed("|/bin/sh|sh|90 (a")),
    ],
    ids=[
        "an orphan of exec",
        "another program by that name",
        "another program at that path",
        "the same interpreter",
        "a name with a newline",
    ],
)
def test_processes_that_came_through_exec_do_not(first: _Process, other: _Process) -> None:
    assert _foreign([first, other]) == [other]


@pytest.mark.parametrize("result", [CommandResult(137, "", ""), CommandResult(126, "", "no shell")])
def test_a_container_that_ends_meanwhile_or_has_no_shell_has_no_processes(result: CommandResult) -> None:
    api = cast(Kubernetes, SimpleNamespace(exec=lambda *arguments, **options: result))
    assert _processes(api, {"metadata": {"name": "p", "namespace": "n"}}, {"name": "c"}) == []


def test_a_process_left_behind_is_a_complaint_until_it_ends() -> None:
    problem = shop_problem(TargetPort)
    with prepared_episode(problem) as episode, agent_of(episode) as agent:
        assert Processes().complaints(problem) == []
        pod = next(
            one["metadata"]["name"]
            for one in agent.list("pods", SHOP)
            if (one["status"].get("containerStatuses") or [{}])[0].get("ready")
        )
        agent.exec(pod, ["sh", "-c", "(sleep 60; true) >/dev/null 2>&1 &"], SHOP)
        found = Processes().complaints(problem)
        assert found and all(pod in complaint and "sleep 60" in complaint for complaint in found)
        episode.cluster.wait(60)
        assert Processes().complaints(problem) == []
        debugger = {"name": "debugger", "image": "busybox:1.36", "command": ["sleep", "60"]}
        debugged = {"spec": {"ephemeralContainers": [debugger]}}
        agent.patch("pods", pod, debugged, SHOP, subresource="ephemeralcontainers")
        episode.cluster.wait(10)
        assert Processes().complaints(problem) == [f"the ephemeral container debugger of {pod} still runs"]
        episode.cluster.wait(60)
        assert Processes().complaints(problem) == []
        # A list by the container's own shell is as good as the container's files, and these are the agent's.
        fake = "printf '#!/bin/bash\\necho 1\\n' >/bin/sh.new; chmod +x /bin/sh.new; mv /bin/sh.new /bin/sh"
        agent.exec(pod, ["sh", "-c", f"(sleep 70; true) >/dev/null 2>&1 & sleep 1; {fake}"], SHOP)
        found = Processes().complaints(problem)
        assert found and all(pod in complaint and "sleep 70" in complaint for complaint in found)
