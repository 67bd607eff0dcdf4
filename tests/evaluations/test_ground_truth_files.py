"""Ground truth files in all formats and locations."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import yaml

from itbench_evaluations import InputError, load_truths, parse_ground_truth
from srearena.ground_truth.files import load_document
from srearena.ground_truth.parsing import canonical_id

from .samples import SHOP

FLAT = yaml.safe_load((SHOP / "Scenario-1" / "ground_truth.yaml").read_text())


def test_a_directory_of_scenarios_holds_flat_wrapped_and_v2_keys() -> None:
    truths = load_truths(SHOP).truths
    assert {incident: truth.format for incident, truth in truths.items()} == {"1": "flat", "2": "v1", "3": "v2"}
    assert [group.id for group in truths["2"].roots] == ["quota-1", "payment-deployment-1"]
    assert truths["3"].roots[0].name == "email"
    assert truths["3"].remedies == ("Remove the readiness probe that asks for a path which does not exist",)
    assert truths["1"].faults[0].change == "data.cartFailure changed from off to on"


def test_scenarios_may_lie_deep_below(tmp_path: Path) -> None:
    deep = tmp_path / "snapshots" / "sre" / "v0.1-abc" / "abc"
    shutil.copytree(SHOP, deep)
    assert set(load_truths(tmp_path).truths) == {"1", "2", "3"}


@pytest.mark.parametrize(
    "name", ["all.json", "all.yaml", "data.jsonl", "dir/ground_truths.json", "index.json", "one.yml"]
)
def test_one_file_may_hold_one_key_or_all(tmp_path: Path, name: str) -> None:
    other = {**FLAT, "id": "Scenario-9"}
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if name == "data.jsonl":
        rows = [{"id_aa": 1, "scenario_id": "Scenario-1", "ground_truth_yaml": yaml.safe_dump(FLAT)}]
        path.write_text("\n".join(map(json.dumps, rows)))
        expected = {"1"}
    elif name == "index.json":
        path.write_text(json.dumps({"Scenario-1": FLAT, "scenario_9": FLAT}))
        expected = {"1", "9"}
    elif name == "one.yml":
        path.write_text(yaml.safe_dump(FLAT))
        expected = {"one"}
    else:
        document = [{**FLAT, "id": "1"}, other]
        path.write_text(json.dumps(document) if path.suffix == ".json" else yaml.safe_dump(document))
        expected = {"1", "9"}
    found = load_truths(path.parent if path.name == "ground_truths.json" else path).truths
    assert set(found) == expected


def test_the_directory_decides_which_incident_a_scenario_file_is_about(tmp_path: Path) -> None:
    place = tmp_path / "scenario_61"
    place.mkdir()
    wrapped = {"apiVersion": "itbench.io/v1", "metadata": {"name": "scenario-110"}, "spec": FLAT}
    (place / "groundtruth_v1.yaml").write_text(yaml.safe_dump(wrapped))
    truth = load_truths(tmp_path).truths["61"]
    assert any("calls itself incident 110" in oddity for oddity in truth.warnings)


def test_two_keys_for_one_incident_are_reported(tmp_path: Path) -> None:
    for version in ("v0.1", "v0.2"):
        shutil.copytree(SHOP / "Scenario-1", tmp_path / version / "Scenario-1")
    found = load_truths(tmp_path)
    assert len(found.truths) == 1
    assert "two ground truths" in found.warnings[0] and "using" in found.warnings[0]
    assert "v0.2" in found.truths["1"].path


@pytest.mark.parametrize(
    "text", ["Scenario-1", "scenario_1", "scenario1", "incident-1", "1", "scenario-i1", "Scenario-01"]
)
def test_spellings_of_an_incident_are_one_incident(text: str) -> None:
    assert canonical_id(text) == "1"


def test_other_names_are_themselves() -> None:
    assert canonical_id("k8s_target_port-misconfig") == "k8s_target_port-misconfig"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("groups: [", "not valid yaml"),
        ("- 1\n- 2\n", "not an object"),
        ("a: 1", "neither `groups`"),
        ("", "not an object"),
        ("[" * 100_000, "nested more deeply than 200 levels"),
        ("- " * 5_000 + "x", "nested more deeply"),
        ("groups: &a [*a]", "more than 1000000 nodes"),
        ("a: &a0 [x]\n" + "".join(f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)), "nodes"),
    ],
)
def test_a_key_that_cannot_be_read_is_named(tmp_path: Path, content: str, complaint: str) -> None:
    place = tmp_path / "Scenario-1"
    place.mkdir()
    (place / "ground_truth.yaml").write_text(content)
    with pytest.raises(InputError, match=complaint) as failure:
        load_truths(tmp_path)
    assert "Scenario-1" in str(failure.value)


def test_a_key_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    for place in ("Scenario-1", "Scenario-2"):
        (tmp_path / place).mkdir()
    os.mkfifo(tmp_path / "Scenario-1" / "ground_truth.yaml")
    (tmp_path / "Scenario-2" / "ground_truth.yaml").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="no ground truth under"):
        load_truths(tmp_path)
    with pytest.raises(InputError, match="no regular file"):
        load_document(tmp_path / "Scenario-2" / "ground_truth.yaml")


def test_a_list_of_keys_without_ids_is_refused(tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text(json.dumps([FLAT, FLAT]))
    with pytest.raises(InputError, match="add an `id`"):
        load_truths(tmp_path / "all.json")


def test_a_key_that_marks_no_root_gets_it_from_its_fault_and_says_so() -> None:
    groups = [{**group, "root_cause": False} for group in FLAT["groups"]]
    truth = parse_ground_truth({**FLAT, "groups": groups}, default_id="1")
    assert [group.id for group in truth.roots] == ["flags-1"]
    assert "no group is marked root_cause" in truth.warnings[0]
