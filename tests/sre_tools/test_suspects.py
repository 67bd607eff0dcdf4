"""The ranking of suspects by the tools' replies, and the baselines that it is measured against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.sre_tools_diagnosis import energy_coefficient, first_suspects, is_root, robust_score
from clients.rules.suspects import rank
from sre_tools.offline_incident_analysis.workloads import workload_of
from srearena.ground_truth.parsing import parse_ground_truth
from tests.snapshots import samples


def test_the_suspect_of_the_sample_incident_is_its_root_cause(directory: Path, tmp_path: Path) -> None:
    truth = parse_ground_truth(samples.TRUTH, default_id="7")
    found = first_suspects(directory, truth, cache=tmp_path / "cache")
    assert found["rules"]["first"][0] == "payment"
    assert found["rules"]["place"] == 1
    for baseline in ("baro", "epsilon"):
        assert found[baseline]["first"].count("payment") == 1, "its CPU and memory rose"


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("cart-5f7d9c4b6-x2x9z", "Pod", "cart"),
        ("tidb-0", "Pod", "tidb"),
        ("load-job-c56h7", "Pod", "load-job"),
        ("memcached-user-cache", "", "memcached-user-cache"),
        ("cart-5f7d9c4b6", "ReplicaSet", "cart"),
        ("ts-order-service", "Service", "ts-order-service"),
    ],
)
def test_objects_point_to_their_workload(name: str, kind: str, expected: str) -> None:
    assert workload_of(name, kind) == expected


def test_a_changed_object_outranks_alerts_about_requests() -> None:
    replies: dict[str, dict[str, Any]] = {
        "change_impact": {
            "data": [
                {"entity": "shop/Service/cart", "score": 60.0, "change": "targetPort"},
                {"entity": "shop/Pod/front-5f7d9c4b6-x2x9z", "score": 90.0, "change": "Pod added"},
                {"entity": "shop/Job/backup-29384756", "score": 90.0, "change": "Job added"},
                {"entity": "shop/Job/warm-up", "score": 5.0, "change": "Job added"},
            ]
        },
        "get_trace_error_tree": {
            "summary": {"pivot_time": "x", "root_cause_suspect": {"service": "cart", "reason": "refused"}}
        },
        "event_analysis": {"data": []},
        "alert_summary": {
            "summary": {},
            "data": [
                {"alertname": "HighRequestErrorRate", "entity": "front", "began_during_recording": True},
                {"alertname": "Watchdog", "entity": "cluster-wide", "began_during_recording": True},
                {"alertname": "KubePodNotReady", "entity": "old-5f7d9c4b6-x2x9z", "began_during_recording": False},
            ],
        },
    }

    def ask(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return replies[tool]

    first, second, third = rank(ask)
    assert (first.entity, first.reasons) == ("shop/Service/cart", ["targetPort", "refused"])
    assert (second.entity, second.score) == ("front", 5.0)
    assert third.entity == "shop/Job/warm-up", "other than the Job of a schedule it is a cause"


def test_the_baselines_score_a_metric_as_their_papers_do() -> None:
    before, after = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([3.0, 11.0])
    assert robust_score(before, after) == 4.0  # (11 - 3) / (4 - 2)
    assert energy_coefficient(before, before) == 0.0
    # Two points: 2 * 1 between, nothing within.
    assert energy_coefficient(np.array([0.0, 0.0]), np.array([1.0, 1.0])) == 1.0


def test_an_alias_of_a_root_cause_is_right_and_a_victim_is_not() -> None:
    truth = parse_ground_truth({**samples.TRUTH, "aliases": [["payment-1", "checkout-1"]]}, default_id="7")
    assert is_root(truth, "payment") and is_root(truth, "checkout")
    assert not is_root(parse_ground_truth(samples.TRUTH, default_id="7"), "checkout")
