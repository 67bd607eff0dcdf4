"""Every recorded request gets the answer a real server gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.strategies.server import answer

RECORDED = Path(__file__).parent / "recorded"


def _cases() -> list[Any]:
    found = []
    for path in sorted(RECORDED.glob("*.json")):
        for number, case in enumerate(json.loads(path.read_text())):
            what = f"{path.stem}-{number}-{case['obj']['kind']}"
            found.append(pytest.param(case, id=what))
    return found


@pytest.mark.parametrize("case", _cases())
def test_the_answer_is_the_recorded_one(case: dict[str, Any]) -> None:
    reply = answer(case["obj"], case.get("old"), case.get("sub", ""))
    # Where several things are wrong with the entries of a map, a real server names them in no particular order.
    assert sorted(reply.problems) == sorted(case.get("causes", []))
    assert reply.warnings == case.get("warnings", [])
    if "object" in case:
        assert {key: value for key, value in reply.obj.items() if key not in ("apiVersion", "kind")} == case["object"]


def test_most_of_what_was_recorded_are_refusals_and_some_are_not() -> None:
    cases = [case.values[0] for case in _cases()]
    assert sum("causes" in case for case in cases) > 300
    assert sum("object" in case for case in cases) > 40
