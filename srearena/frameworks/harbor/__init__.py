"""Problems as tasks of Harbor, and trials as trajectories in its format (ATIF).

A task has two containers. `arena` runs the cluster and the grader (`srearena serve`); `main` is where the agent works,
with kubectl and the command `arena`. They share the loopback interface and the folder `/arena`, and nothing else: not
the processes, and not the secret that the verifier brings when the agent has ended.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.metadata import version as installed_version
from importlib.resources import files
from pathlib import Path
from secrets import token_hex
from typing import Any

from srearena.conductor.episode.episode import describe, questions_of
from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.results.store import folder_of, read_trials
from srearena.conductor.session import read_session
from srearena.conductor.stages import USUAL
from srearena.conductor.validity.player import right_answers

ATIF = "ATIF-v1.4"
_MINUTES = 30


def export_tasks(folder: Path, problems: Sequence[str], seed: int = 0, image: str = "srearena") -> list[Path]:
    """Write one task for each problem, and return their folders.

    A task has the reference remedy and the right answers in `solution`, and the verifier's secret in `tests`: Harbor
    shows neither to an agent. Names of tasks do not tell the problem.
    """
    registry = ProblemRegistry()
    return [_write_task(folder, registry.get_problem(name, seed), seed, image) for name in problems]


def _write_task(folder: Path, problem: Problem, seed: int, image: str) -> Path:
    if not problem.remedy and problem.repairable and problem.level != "none":
        raise ArenaError(f"{problem.id} has no reference remedy: a task needs a solution")
    name = sha256(f"{problem.id}:{seed}".encode()).hexdigest()[:12]
    task = folder / f"incident-{name}"
    secret = token_hex(16)
    serve = [
        "serve",
        problem.id,
        "--seed",
        str(seed),
        "--stages",
        ",".join(USUAL),
        "--share",
        "/arena",
        "--mcp",
        "none",
        "--json",
    ]
    contents = {
        "instruction.md": _instruction(problem),
        "task.toml": _TASK.format(name=name, seconds=_MINUTES * 60, difficulty=problem.difficulty),
        "environment/Dockerfile": _resource("Dockerfile"),
        "environment/arena": _resource("arena"),
        "environment/docker-compose.yaml": _compose(image, [*serve, "--max-seconds", str(_MINUTES * 60)], secret),
        "solution/solve.sh": _solution(problem),
        "tests/test.sh": _resource("test.sh"),
        "tests/key": secret + "\n",
    }
    for path, text in contents.items():
        file = task / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        if path.endswith((".sh", "/arena")):
            file.chmod(0o755)
    return task


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


_TASK = """schema_version = "1.4"

[task]
name = "srearena/incident-{name}"
description = "An incident on a Kubernetes cluster: detect it, localize it, repair it"

[metadata]
difficulty = "{difficulty}"
category = "site-reliability-engineering"

[agent]
timeout_sec = {seconds}

[verifier]
timeout_sec = 900

[environment]
build_timeout_sec = 900
cpus = 2
memory_mb = 4096

[environment.healthcheck]
command = "test -s /arena/episode.json"
interval_sec = 2
retries = 90
"""


def _instruction(problem: Problem) -> str:
    questions = "\n".join(questions_of(USUAL))
    return f"""{describe(problem.app)}

`kubectl` is set up with your access (KUBECONFIG=/arena/kubeconfig). `/arena/episode.json` has the addresses of
Prometheus, Loki and Jaeger, and the token that they take.

You are asked, one after the other:
{questions}

- `arena question` prints the present question;
- `arena submit ANSWER` answers it, with JSON, e.g. `arena submit '"Yes"'`; without an answer it submits the repair;
- `arena act 'get_alerts()'` performs one of the actions that `arena task` lists.

Repair the system before you submit the last answer. You have {_MINUTES} minutes.
"""


def _compose(image: str, command: Sequence[str], secret: str) -> str:
    document: dict[str, Any] = {
        "services": {
            "main": {
                "network_mode": "service:arena",
                "depends_on": ["arena"],
                "environment": {"KUBECONFIG": "/arena/kubeconfig"},
                "volumes": ["arena:/arena"],
            },
            "arena": {
                "image": image,
                "command": list(command),
                "environment": {"SREARENA_GRADING_TOKEN": secret},
                "user": "root",  # owner of the shared folder
                "volumes": ["arena:/arena"],
            },
        },
        "volumes": {"arena": {}},
    }
    return json.dumps(document, indent=2) + "\n"  # JSON is YAML


def _solution(problem: Problem) -> str:
    answers = right_answers(problem)
    lines = ["#!/bin/bash", "# The reference remedy, and the right answers.", "set -euo pipefail"]
    for stage in USUAL:
        if stage == "mitigation":
            lines += [problem.remedy.strip(), "arena act 'wait(60)'", "arena submit"]
        else:
            lines.append(f"arena submit {shlex.quote(json.dumps(answers[stage]))}")
    return "\n".join(line for line in lines if line) + "\n"


def trajectories(run: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The trials of a run as ATIF documents, each with the name of its file."""
    for document in read_trials(run):
        folder = folder_of(run, document["problem"], document["trial"])
        yield f"{folder.parent.name}-{folder.name}.json", _trajectory(document, folder / "session.jsonl")


def _trajectory(document: dict[str, Any], session: Path) -> dict[str, Any]:
    problem = ProblemRegistry().get_problem(document["problem"])
    steps: list[dict[str, Any]] = [{"source": "system", "message": describe(problem.app)}]
    for entry in read_session(session) if session.exists() else ():
        if entry["what"] == "action":
            call = {
                "tool_call_id": f"call-{entry['step']}",
                "function_name": "act",
                "arguments": {"text": entry["text"]},
            }
            steps.append({"timestamp": entry["at"], "source": "agent", "message": entry["text"], "tool_calls": [call]})
        elif entry["what"] == "state":
            result = {"source_call_id": f"call-{entry['step']}", "content": entry["text"]}
            steps[-1]["observation"] = {"results": [result]}
    usage = document.get("usage") or {}
    return {
        "schema_version": ATIF,
        "session_id": str(document.get("session") or f"{document['problem']}-{document['trial']}"),
        "agent": {"name": str(document["agent"]), "version": installed_version("srearena")},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": {
            "total_prompt_tokens": usage.get("tokens_in", 0),
            "total_completion_tokens": usage.get("tokens_out", 0),
            "total_cost_usd": usage.get("cost", 0.0),
            "total_steps": len(steps),
        },
        "extra": {"outcome": document["outcome"], "scores": document.get("scores"), "seed": document["seed"]},
    }
