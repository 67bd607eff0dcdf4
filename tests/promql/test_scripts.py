"""Prometheus' own test scripts hold here: all cases of floats that need no flag which this server does not set."""

from __future__ import annotations

import pytest

from tests.promql.scripts import MODULE, OTHER_FEATURES, Script, folder

DELAYED_NAME_REMOVAL = {
    "histograms.test": {1179, 1184, 1189, 1200, 1205, 1210},
    "name_label_dropping.test": {59, 64, 69, 74, 89, 115, 119, 123},
}
"""Lines of cases that only hold with `--enable-feature=promql-delayed-name-removal`."""
LEAST = 1090
"""Cases that ran when this was written; fewer mean that the reader of scripts lost some."""


@pytest.mark.skipif(folder() is None, reason=f"{MODULE} cannot be fetched")
def test_prometheus_own_scripts_hold() -> None:
    directory = folder()
    assert directory is not None
    wrong: list[str] = []
    count = 0
    for path in sorted(directory.glob("*.test")):
        if path.name in OTHER_FEATURES:
            continue
        for case, verdict in Script(path.read_text()).run():
            if case.line in DELAYED_NAME_REMOVAL.get(path.name, ()):
                continue
            count += 1
            if verdict:
                wrong.append(f"{path.name}:{case.line}: {case.query}: {verdict}")
    assert not wrong, "\n".join(wrong)
    assert count >= LEAST


def test_a_script_is_read_and_a_wrong_answer_found() -> None:
    text = """
load 1m
    requests_total{code="200"} 0+60x10 _ stale
    requests_total{code="500"} 1x2 _x3 7

eval instant at 5m requests_total{code="200"}
    requests_total{code="200"} 300

eval range from 0 to 2m step 1m sum(requests_total)
    {} 1 61 121

eval instant at 12m requests_total

eval instant at 5m rate(requests_total{code="200"}[5m])
    expect no_info
    {code="200"} 2

eval instant at 5m requests_total{
    expect fail msg: unexpected end of input inside braces
"""
    verdicts = [verdict for _, verdict in Script(text).run()]
    assert [bool(verdict) for verdict in verdicts] == [False, False, False, True, False]
    assert "expected" in verdicts[3]
