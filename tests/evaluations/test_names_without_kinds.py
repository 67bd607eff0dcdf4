"""A name without a kind is looked up in the snapshot beside the ground truth, and counts where it is unambiguous."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from itbench_evaluations import load_truths
from itbench_evaluations.grading import Options, grade_diagnosis
from tests.evaluations.samples import answer, itbench_eval, write_trial

KEY = """
id: "1"
groups:
  - {id: cart, kind: Deployment, namespace: shop, name: cart, root_cause: true}
  - {id: flags, kind: ConfigMap, namespace: shop, name: flags}
propagations: []
"""
OBJECTS = [("Deployment", "shop", "cart"), ("Service", "shop", "cart"), ("ConfigMap", "shop", "flags")]


def snapshot(place: Path, *more: tuple[str, str, str]) -> Path:
    directory = place / "Scenario-1"
    directory.mkdir(parents=True)
    (directory / "ground_truth.yaml").write_text(KEY)
    rows = [
        json.dumps({"kind": kind, "metadata": {"namespace": namespace, "name": name}}).replace('"', '""')
        for kind, namespace, name in [*OBJECTS, *more]
    ]
    (directory / "k8s_objects_raw.tsv").write_text("Timestamp\tBody\n" + "".join(f'0\t"{row}"\n' for row in rows))
    return place


def recall(place: Path, name: str, *, strict: bool = False) -> float | None:
    truth = load_truths(place).truths["1"]
    return grade_diagnosis(truth, answer(name), Options(strict=strict)).scores["root_cause_entity_recall"]


@pytest.mark.parametrize("name", ["cart", "shop/cart"])
def test_a_name_of_one_component_is_that_component(tmp_path: Path, name: str) -> None:
    place = snapshot(tmp_path)
    assert recall(place, name) == 1.0
    assert recall(place, name, strict=True) == 0.0


def test_a_name_of_two_components_stays_unresolved(tmp_path: Path) -> None:
    assert recall(snapshot(tmp_path, ("ConfigMap", "shop", "cart")), "cart") == 0.0


def test_another_name_or_namespace_is_not_taken_for_it(tmp_path: Path) -> None:
    place = snapshot(tmp_path)
    assert [recall(place, name) for name in ("flags", "bank/cart", "cartoon")] == [0.0, 0.0, 0.0]


def test_the_command_has_the_option(tmp_path: Path) -> None:
    place = snapshot(tmp_path / "truth")
    write_trial(tmp_path / "outputs", "1", "1", answer("cart"))
    found = {}
    for flags in ((), ("--strict",)):
        done = itbench_eval("-g", place, "-o", tmp_path / "outputs", "--judge", "none", *flags, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        document = json.loads((tmp_path / "evaluation_results.json").read_text())
        found[flags] = document["raw_results"][0]["flat_scores"]["root_cause_entity_f1"]
        assert document["config"]["strict"] is bool(flags)
    assert found == {(): 1.0, ("--strict",): 0.0}
