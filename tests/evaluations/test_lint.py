"""Mistakes in ground truths are found before they are used for grading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from itbench_evaluations.lint import lint_path

from .samples import SHOP, itbench_eval

FLAT = yaml.safe_load((SHOP / "Scenario-1" / "ground_truth.yaml").read_text())


def write_truth(tmp_path: Path, changes: dict[str, Any], incident: str = "Scenario-1") -> Path:
    place = tmp_path / incident
    place.mkdir(parents=True, exist_ok=True)
    (place / "ground_truth.yaml").write_text(yaml.safe_dump({**FLAT, **changes}))
    return place


def codes(path: Path) -> dict[str, str]:
    return {finding.code: finding.level for finding in lint_path(path)[0]}


def test_our_own_keys_are_clean_but_for_what_they_are_there_to_show() -> None:
    assert codes(SHOP / "Scenario-1") == {}
    assert codes(SHOP / "Scenario-2") == {"misses-bare-name": "warning"}
    assert codes(SHOP / "Scenario-3") == {}


@pytest.mark.parametrize(
    ("changes", "code", "level"),
    [
        ({"groups": [{**group, "root_cause": False} for group in FLAT["groups"]]}, "odd-document", "error"),
        ({"aliases": [["cart-pod-1", "ghost"]]}, "unknown-group", "warning"),
        ({"propagations": [*FLAT["propagations"], {"source": "flags-1", "target": "ghost"}]}, "unknown-group", "error"),
        ({"groups": [*FLAT["groups"], {"id": "x", "kind": "Pod"}]}, "no-selector", "error"),
        ({"groups": [*FLAT["groups"], {"id": "x", "filter": ["x"]}]}, "no-kind", "warning"),
        ({"groups": [*FLAT["groups"], {"id": "x", "kind": "Pod", "filter": ["*.*"]}]}, "not-a-regex", "warning"),
        ({"groups": [*FLAT["groups"], {"id": "x", "kind": "Job", "filter": [".*"]}]}, "matches-all", "warning"),
        ({"groups": [*FLAT["groups"], {"id": "x", "kind": "Job", "filter": ["(x+)+"]}]}, "explosive-regex", "warning"),
        ({"groups": [*FLAT["groups"], FLAT["groups"][0]]}, "odd-document", "warning"),
        ({"propagations": []}, "no-propagations", "warning"),
        ({"propagations": FLAT["propagations"][1:]}, "not-reached", "warning"),
        ({"propagations": [*FLAT["propagations"], {"source": "flags-1", "target": "flags-1"}]}, "self-loop", "warning"),
        ({"aliases": [["flags-1", "checkout-service-1"]]}, "victim-alias", "warning"),
        ({"fault": [{"condition": "To be specified"}]}, "no-condition", "warning"),
        (
            {"groups": [{"id": "flags-1", "kind": "ConfigMap", "filter": ["a(?!.)b"], "root_cause": True}]},
            "unsatisfiable",
            "error",
        ),
    ],
)
def test_each_defect_has_its_name(tmp_path: Path, changes: dict[str, Any], code: str, level: str) -> None:
    write_truth(tmp_path, changes)
    assert codes(tmp_path).get(code) == level


def _objects(*entities: tuple[str, str, str]) -> list[dict[str, Any]]:
    return [{"kind": kind, "metadata": {"namespace": namespace, "name": name}} for namespace, kind, name in entities]


SEEN = _objects(
    ("shop", "ConfigMap", "flags"),
    ("shop", "Pod", "cart-6d5f7c9b8-x2v4z"),
    ("shop", "Service", "cart"),
    ("shop", "Service", "checkout"),
)


def _raw_table(objects: list[dict[str, Any]]) -> str:
    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    rows = [f"2025-01-01\tx\t{quoted(json.dumps(each, indent=1))}" for each in objects]
    return "\n".join(["Timestamp\tServiceName\tBody", *rows])


def test_a_filter_that_matches_nothing_in_the_snapshot_is_flagged(tmp_path: Path) -> None:
    place = write_truth(tmp_path, {})
    (place / "k8s_objects_raw.tsv").write_text(_raw_table(SEEN))
    findings = [finding for finding in lint_path(tmp_path)[0] if finding.code == "matches-nothing"]
    assert [finding.level for finding in findings] == ["warning"]
    assert "frontend-service-1" in findings[0].message
    (place / "k8s_objects_raw.tsv").write_text(_raw_table(SEEN[1:]))
    assert "error" in {f.level for f in lint_path(tmp_path)[0] if f.code == "matches-nothing"}  # the root itself


def test_processed_tables_events_and_snapshots_elsewhere_are_read_too(tmp_path: Path) -> None:
    write_truth(tmp_path / "keys", {})
    place = tmp_path / "snapshots" / "v1" / "Scenario-1"
    place.mkdir(parents=True)
    rows = [
        "shop\tConfigMap\tflags",
        "shop\tPod\tcart-6d5f7c9b8-x2v4z",
        "shop\tService\tcart",
        "shop\tService\tcheckout",
    ]
    (place / "k8s_objects_shop.tsv").write_text("\n".join(["namespace\tobject_kind\tobject_name", *rows]))
    event = {
        "type": "ADDED",
        "object": {"kind": "Event", "involvedObject": {"kind": "Service", "name": "frontend", "namespace": "shop"}},
    }
    (place / "k8s_events_raw.tsv").write_text(_raw_table([event]))
    findings, _ = lint_path(tmp_path / "keys", tmp_path / "snapshots")
    assert [finding.code for finding in findings] == []


def test_one_bad_file_does_not_hide_the_others(tmp_path: Path) -> None:
    write_truth(tmp_path, {"fault": [{"condition": "tbd"}]}, "Scenario-2")
    (tmp_path / "Scenario-9").mkdir()
    (tmp_path / "Scenario-9" / "ground_truth.yaml").write_text("groups: [")
    assert codes(tmp_path) == {"unreadable": "error", "no-condition": "warning"}


def test_the_command_says_what_it_found_and_fails_on_errors(tmp_path: Path) -> None:
    clean = itbench_eval("lint", SHOP, cwd=tmp_path)
    assert clean.returncode == 0 and "3 ground truth(s): 0 error(s), 1 warning(s)" in clean.stdout
    write_truth(tmp_path / "bad", {"groups": [{"id": "x", "kind": "Pod", "root_cause": True}]})
    bad = itbench_eval("lint", tmp_path / "bad", "--json", cwd=tmp_path)
    report = json.loads(bad.stdout)
    assert bad.returncode == 1 and report["errors"] >= 1
    assert {"level", "code", "incident_id", "message", "file"} == set(report["findings"][0])
    missing = itbench_eval("lint", tmp_path / "nowhere", cwd=tmp_path)
    assert missing.returncode == 2 and "not found" in missing.stderr
