"""Alerts go through pending, firing and resolved as with continuous evaluation of the rules."""

from __future__ import annotations

import math
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.telemetry.alerts.alertmanager_api import AlertmanagerApi, fingerprint
from srearena.cluster.embedded.telemetry.alerts.evaluation import Rules
from srearena.cluster.embedded.telemetry.alerts.rule_files import read_rules
from srearena.cluster.embedded.telemetry.metrics.api import PrometheusApi
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

START = 1_700_000_010.0
RULES = """
groups:
- name: test
  interval: 30s
  rules:
  - record: job:errors:rate1m
    expr: sum by (job) (errors)
    labels: {team: shop}
  - alert: TooManyErrors
    expr: job:errors:rate1m > 5
    for: 1m
    labels: {severity: page}
    annotations:
      summary: "{{ $labels.job }} has {{ $value }} errors"
  - alert: Sticky
    expr: errors > 100
    keep_firing_for: 2m
"""


class Clock:
    now = START


class Bench:
    """A store with one series that a test writes every 15 seconds, and rules over it."""

    def __init__(self, rules: str = RULES) -> None:
        self.store = MetricStore()
        self.clock = Clock()
        self.rules = Rules(self.store, read_rules(rules, "test.yaml"))
        self.api = PrometheusApi(self.store, self.clock, self.rules)
        self.block = self.store.block([{"__name__": "errors", "job": "a"}])

    def live(self, *values: float) -> None:
        for value in values:
            self.block.append(self.clock.now, [value])
            self.clock.now += 15

    def ask(self, path: str, **params: str) -> Any:
        _, _, body = self.api.handle("GET", f"/api/v1/{path}", {name: [value] for name, value in params.items()})
        return orjson.loads(body)["data"]

    def states(self) -> dict[str, str]:
        return {alert["labels"]["alertname"]: alert["state"] for alert in self.ask("alerts")["alerts"]}


def test_an_alert_is_pending_then_fires_then_is_gone() -> None:
    bench = Bench()
    bench.live(0, 0, 9, 9, 9)
    assert bench.states() == {"TooManyErrors": "pending"}
    bench.live(9, 9, 9)
    assert bench.states() == {"TooManyErrors": "firing"}
    (alert,) = bench.ask("alerts")["alerts"]
    assert alert["labels"] == {"alertname": "TooManyErrors", "job": "a", "severity": "page", "team": "shop"}
    assert alert["annotations"] == {"summary": "a has 9 errors"}
    assert alert["value"] == "9e+00"
    bench.live(0, 0, 0)
    assert bench.states() == {}


def test_what_happened_is_found_also_when_nobody_looked_meanwhile() -> None:
    bench = Bench()
    bench.live(*[0] * 4, *[9] * 12, *[0] * 8)
    result = bench.ask("query", query="count_over_time(ALERTS[10m])")["result"]
    counts = {entry["metric"]["alertstate"]: int(entry["value"][1]) for entry in result}
    assert counts == {"pending": 2, "firing": 4}
    assert bench.states() == {}


def test_a_firing_alert_is_kept_for_a_while_when_it_asks_for_that() -> None:
    bench = Bench()
    bench.live(200, 200, 200, 0, 0, 0)
    assert bench.states()["Sticky"] == "firing"
    bench.live(*[0] * 8)
    assert "Sticky" not in bench.states()


def test_recorded_series_can_be_asked_for() -> None:
    bench = Bench()
    bench.live(1, 2, 3, 4, 5, 6)
    (entry,) = bench.ask("query", query="job:errors:rate1m")["result"]
    assert entry["metric"] == {"__name__": "job:errors:rate1m", "job": "a", "team": "shop"}
    assert entry["value"][1] == "5"  # the rule was evaluated before the last scrape


def test_when_it_became_active_is_the_value_of_alerts_for_state() -> None:
    bench = Bench()
    bench.live(9, 9, 9, 9, 9, 9)
    (entry,) = bench.ask("query", query="ALERTS_FOR_STATE")["result"]
    first = math.ceil((START - 7.5) / 30) * 30 + 7
    assert float(entry["value"][1]) == first


def test_rules_show_their_state_and_health() -> None:
    bench = Bench()
    bench.live(9, 9, 9)
    (group,) = bench.ask("rules")["groups"]
    assert group["name"] == "test" and group["interval"] == 30
    record, errors, sticky = group["rules"]
    assert (record["type"], record["health"], record["query"]) == ("recording", "ok", "sum by (job) (errors)")
    assert (errors["type"], errors["state"], errors["duration"]) == ("alerting", "pending", 60)
    assert len(errors["alerts"]) == 1
    assert sticky["state"] == "inactive"
    assert [rule["type"] for rule in bench.ask("rules", type="record")["groups"][0]["rules"]] == ["recording"]


def test_a_rule_that_cannot_be_evaluated_says_so_and_harms_no_other() -> None:
    bench = Bench(
        """
groups:
- name: bad
  rules:
  - alert: Broken
    expr: label_replace(errors, "x", "y", "job", "(")
  - alert: Fine
    expr: errors > 1
"""
    )
    bench.live(9, 9, 9)
    broken, fine = bench.ask("rules")["groups"][0]["rules"]
    assert broken["health"] == "err" and "invalid regular expression" in broken["lastError"]
    assert fine["state"] == "firing"


def test_alertmanager_shows_what_fires() -> None:
    bench = Bench()
    manager = AlertmanagerApi(bench.rules, bench.clock)
    bench.live(*[9] * 3)
    assert orjson.loads(manager.handle("GET", "/api/v2/alerts", {})[2]) == []
    bench.live(*[9] * 5)
    (alert,) = orjson.loads(manager.handle("GET", "/api/v2/alerts", {})[2])
    assert alert["status"]["state"] == "active"
    assert alert["labels"]["alertname"] == "TooManyErrors"
    assert alert["startsAt"].endswith("Z") and len(alert["fingerprint"]) == 16
    (group,) = orjson.loads(manager.handle("GET", "/api/v2/alerts/groups", {})[2])
    assert group["labels"] == {"alertname": "TooManyErrors"}
    for filters, count in (([], 1), (['severity="page"'], 1), (["severity=~p.*", 'job!="a"'], 0), (["job=a"], 1)):
        assert len(orjson.loads(manager.handle("GET", "/api/v2/alerts", {"filter": filters})[2])) == count
    assert manager.handle("GET", "/api/v2/alerts", {"filter": ["nonsense"]})[0] == 400
    assert manager.handle("POST", "/api/v2/silences", {})[0] == 405
    assert manager.handle("GET", "/api/v2/nothing", {})[0] == 404
    for path in ("status", "receivers", "silences"):
        assert manager.handle("GET", f"/api/v2/{path}", {})[0] == 200


def test_fingerprints_are_those_of_the_data_model() -> None:
    assert fingerprint(()) == "cbf29ce484222325"


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from([0.0, 9.0, 200.0]), min_size=1, max_size=60),
    st.lists(st.integers(1, 10), max_size=20),
)
def test_it_does_not_matter_when_somebody_looks(values: list[float], pauses: list[int]) -> None:
    """The law laziness rests on: looking often and looking once show the same."""
    watched, unwatched = Bench(), Bench()
    rest = list(values)
    for pause in pauses:
        watched.live(*rest[:pause])
        watched.states()
        rest = rest[pause:]
    watched.live(*rest)
    unwatched.live(*values)
    query = '{__name__=~"ALERTS.*|job:.*"}[1h]'
    assert watched.ask("query", query=query) == unwatched.ask("query", query=query)
    assert watched.ask("alerts") == unwatched.ask("alerts")


@pytest.mark.parametrize("seconds", [0, 5, 14])
def test_no_samples_no_alerts(seconds: int) -> None:
    bench = Bench()
    bench.clock.now += seconds
    assert bench.states() == {}
