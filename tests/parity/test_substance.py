"""Two views are alike exactly where an operator would do the same."""

from __future__ import annotations

import pytest

from tests.parity.substance import substance
from tests.parity.transcripts import View


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (View("x", 0, "a"), View("x", 1, "a"), False),
        (View("events p", 0, "Warning BackOff Pod/p: a\n"), View("events p", 0, "Warning BackOff Pod/p: b\n"), True),
        (View("events p", 0, "Warning BackOff Pod/p: a\n"), View("events p", 0, "Warning Failed Pod/p: a\n"), False),
        (View("get pod", 0, "NAME | STATUS\np | Error\n"), View("get pod", 0, "NAME | STATUS\np | Completed\n"), False),
        (
            View("x", 1, "", "Error from server (NotFound): a"),
            View("x", 1, "", "Error from server (NotFound): b"),
            True,
        ),
        (
            View("x", 1, "", "Error from server (Conflict): a"),
            View("x", 1, "", "Error from server (NotFound): a"),
            False,
        ),
        (
            View("get x", 0, "kind: Pod\nstatus:\n  phase: A\n"),
            View("get x", 0, "kind: Pod\nstatus:\n  phase: B\n"),
            False,
        ),
        (View("get x", 0, "kind: Pod\nspec:\n  b: A\n"), View("get x", 0, "kind: Pod\nspec:\n  b: B\n"), True),
        (View("get x -o jsonpath={.status.reason}", 0, "A"), View("get x -o jsonpath={.status.reason}", 0, "B"), False),
        (
            View("get x -o jsonpath={.status.message}", 0, "A"),
            View("get x -o jsonpath={.status.message}", 0, "B"),
            True,
        ),
    ],
)
def test_what_is_alike(one: View, other: View, alike: bool) -> None:
    assert (substance(one) == substance(other)) is alike


def test_conditions_count_in_any_order() -> None:
    conditions = ["  - type: Ready\n    status: '{}'\n", "  - type: Seen\n    status: 'True'\n"]
    text = "kind: Pod\nstatus:\n  conditions:\n"
    first = View("get x", 0, text + "".join(conditions).format("True"))
    assert substance(first) == substance(View("get x", 0, text + "".join(reversed(conditions)).format("True")))
    assert substance(first) != substance(View("get x", 0, text + "".join(conditions).format("False")))
