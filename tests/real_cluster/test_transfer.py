"""Incidents on the embedded cluster look as `docs/transfer.md` says, beside those that were recorded on a real one."""

from __future__ import annotations

import re

import pytest

from tests.real_cluster.transfer import (
    PAGE,
    RECORDED,
    UNEXPLAINED,
    VERDICTS,
    explanation,
    explanations,
    not_run,
    play_embedded,
    recorded,
    row,
    section,
)
from tests.selection import all_problems, rotation_seed

SLICE = 2
REAL = recorded()


def chosen() -> list[str]:
    """Some of the recorded problems, others every day."""
    names = sorted(REAL)
    if all_problems() or len(names) <= SLICE:
        return names
    start = rotation_seed() * SLICE
    return [names[(start + offset) % len(names)] for offset in range(SLICE)]


@pytest.mark.parametrize("problem", chosen())
def test_an_embedded_incident_differs_from_the_real_one_as_the_page_says(problem: str) -> None:
    embedded = play_embedded(problem)
    text = PAGE.read_text()
    assert row(problem, REAL[problem], embedded) in text
    differences = "\n".join(section(problem, REAL[problem], embedded))
    assert differences in text
    assert differences or f"\n`{problem}`\n" not in text


def test_the_page_covers_every_recording_and_explains_every_difference() -> None:
    text = PAGE.read_text()
    table, _, rest = text.partition("## Differences")
    sections, _, missing = rest.partition("## Not run")
    assert re.findall(r"^\| `(\S+)` \|", table, re.MULTILINE) == sorted(REAL)
    assert UNEXPLAINED not in sections
    assert dict(re.findall(r"^\| `(\S+)` \| (.+) \|$", missing, re.MULTILINE)) == not_run(REAL)


def test_every_explanation_is_of_a_difference() -> None:
    text = PAGE.read_text()
    blocks = dict(re.findall(r"^`(\S+)`\n\n((?:- .+\n)+)", text, re.MULTILINE))
    found = {
        explanation(problem, feature)
        for problem, lines in blocks.items()
        for feature in re.findall(r"^- ([a-z ]+):", lines, re.M)
    }
    assert {entry["why"] for entry in explanations()} <= found


def test_recordings_hold_nothing_of_the_machine_they_were_made_on() -> None:
    for path in RECORDED.glob("*.json"):
        text = path.read_text()
        assert REAL[path.stem]["problem"] == path.stem and REAL[path.stem]["backend"] == "kubernetes"
        assert not re.search(r"\d+\.\d+\.\d+\.\d+|\d{4}-\d\d-\d\d|/(tmp|root|home|work|var)/", text), path.name
        assert VERDICTS not in REAL[path.stem]
