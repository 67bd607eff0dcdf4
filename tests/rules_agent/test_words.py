"""The agent's code contains no name of a problem, an application, or a part of one."""

from __future__ import annotations

import re
from pathlib import Path

from srearena.conductor.problems.registry import ProblemRegistry
from srearena.service.apps import all_applications

FOLDER = Path(__file__).parents[2] / "clients" / "rules"
_PARTS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Service", "ConfigMap", "Job", "CronJob", "Ingress"})
_ORDINARY = frozenset({"kafka", "opensearch", "quote", "rate", "search", "user"})
"""Products, and words that Python, PromQL and MongoDB have, too."""


def test_it_names_no_problem_no_application_and_no_part_of_one() -> None:
    text = "\n".join(path.read_text() for path in sorted(FOLDER.rglob("*.py")))
    names = set(ProblemRegistry().get_problem_ids())
    for app in all_applications():
        names |= {app.namespace, app.name} | {one.name for one in app.manifests if one.kind in _PARTS}
    assert len(names) > 300
    used = [name for name in sorted(names - _ORDINARY) if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]
    assert used == []
