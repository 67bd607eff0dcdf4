"""What Kafka says of its topics and groups: its own tools ask, in a pod of the harness.

Why it cannot be gamed: the tools in the broker's container are files that an agent can exchange; those in a new pod
come from the image that the broker had before the fault (`probe_integrity` compares its digest). They ask at the
broker's Service, and which pod answers there is the subject of `backends`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.probing import declared_image, run_probe

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_BROKER = "kafka"
_MEMORY = "512Mi"
"""The tools are Java programs with a heap of 256 MiB."""


def run_tool(problem: Problem, tool: str, *words: str) -> str:
    """Run one of Kafka's tools and return its output; ProbeFailed where its pod does not run."""
    command = [f"/opt/kafka/bin/{tool}", "--bootstrap-server", f"{_BROKER}:9092", *words]
    script = f"LOG_DIR=/tmp {shlex.join(command)} 2>/dev/null; true"
    return run_probe(problem, script, image=declared_image(problem, _BROKER), memory=_MEMORY)
