"""The real rule manager, run by promtool on the same rules and samples, sees the same alerts in the same states."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from srearena.cluster.embedded.telemetry.alerts.evaluation import Rules
from srearena.cluster.embedded.telemetry.alerts.rule_files import read_rules
from srearena.cluster.embedded.telemetry.metrics.promql.engine import Engine
from srearena.cluster.embedded.telemetry.metrics.promql.values import Vector
from srearena.cluster.embedded.telemetry.metrics.rendering import go_float
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

INTERVAL, STEPS = 15, 40
START = 1_700_000_100.0
AFTER_SCRAPE = 7.5
"""When rules are evaluated here; promtool evaluates at the instant of the samples."""
RULES = """
groups:
- name: parity
  interval: 15s
  rules:
  - record: job:load:sum
    expr: sum by (job) (load)
    labels: {kind: total}
  - alert: Immediate
    expr: load > 5
  - alert: Patient
    expr: load > 5
    for: 45s
    labels: {severity: page, size: '{{ if gt $value 8.0 }}large{{ else }}small{{ end }}'}
  - alert: Sticky
    expr: load > 8
    for: 15s
    keep_firing_for: 1m
  - alert: Total
    expr: job:load:sum > 10
    for: 30s
    annotations: {summary: '{{ $labels.job }} {{ $value | humanize }}'}
"""

Course = dict[str, list[float | None]]


def courses(seed: int) -> Course:
    """Two series that wander, and are sometimes not there."""
    chance = random.Random(seed)
    found: Course = {}
    for name in ("a", "b"):
        value, values = 4.0, []
        for _ in range(STEPS):
            if chance.random() < 0.4:
                value = float(chance.choice((0, 4, 6, 7, 9, 12)))
            values.append(None if chance.random() < 0.1 else value)
        found[name] = values
    return found


def ours(course: Course) -> list[list[dict[str, Any]]]:
    """Per step: the elements of ALERTS and of the recorded series, as promtool's files have samples."""
    store = MetricStore()
    block = store.block([{"__name__": "load", "instance": name, "job": "x"} for name in course])
    for step in range(STEPS):
        row = [values[step] for values in course.values()]
        block.append(START + step * INTERVAL, [float("nan") if value is None else value for value in row])
    rules = Rules(store, read_rules(RULES, "parity.yaml"))
    rules.catch_up(START + STEPS * INTERVAL)
    seen = []
    for step in range(STEPS):
        at = round((START + step * INTERVAL + AFTER_SCRAPE) * 1000)
        vector = Engine(store).instant('{__name__=~"ALERTS|job:load:sum"}', at)
        assert isinstance(vector, Vector)
        seen.append(
            [
                {"labels": _written(dict(labels)), "value": float(go_float(float(row[0])))}
                for labels, row in zip(vector.series, vector.values, strict=True)
            ]
        )
    return seen


def _written(labels: dict[str, str]) -> str:
    name = labels.pop("__name__")
    return f"{name}{{{','.join(f'{key}={chr(34)}{value}{chr(34)}' for key, value in sorted(labels.items()))}}}"


def _notation(values: list[float | None]) -> str:
    """promtool's: `stale` where a scrape found the series gone."""
    return " ".join("stale" if value is None else go_float(value) for value in values)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_states_are_those_of_the_real_rule_manager(tmp_path: Path) -> None:
    tests = []
    for seed in range(12):
        course = courses(seed)
        expectations = [
            {"expr": '{__name__=~"ALERTS|job:load:sum"}', "eval_time": f"{step * INTERVAL}s", "exp_samples": samples}
            for step, samples in enumerate(ours(course))
        ]
        series = [
            {"series": f'load{{instance="{name}",job="x"}}', "values": _notation(values)}
            for name, values in course.items()
        ]
        tests.append({"interval": f"{INTERVAL}s", "input_series": series, "promql_expr_test": expectations})
    assert any(sample for test in tests for step in test["promql_expr_test"] for sample in step["exp_samples"])
    (tmp_path / "rules.yaml").write_text(RULES)
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": f"{INTERVAL}s", "tests": tests}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(document))
    done = subprocess.run(
        ["promtool", "test", "rules", "tests.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[:4000]
