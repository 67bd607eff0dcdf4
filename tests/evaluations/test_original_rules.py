"""Our answer keys by the rules that ITBench's judge is given: the truth, stated in full, gets every point.

The rules are those of its published criteria, applied here by a script instead of a model: entities are mapped to
groups by kind and filter, aliases and views of one workload are one component, paths are contracted to components.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import yaml

from srearena.snapshots.examples import unpack

Document = dict[str, Any]
FAILURE = re.compile(
    r"error|fail|latenc|slow|high cpu|saturat|unavailab|not ready|ImagePullBackOff|CrashLoop|no requests|OOM", re.I
)


class OriginalRules:
    """Scores by the published criteria, for one key."""

    def __init__(self, key: Document) -> None:
        self.groups: dict[str, Document] = {group["id"]: group for group in key["groups"]}
        self.key = key
        self.classes = {identity: self._class_of(identity) for identity in self.groups}

    def _class_of(self, identity: str) -> str:
        """One name for a group and its aliases."""
        members = {identity}
        for _ in self.key["aliases"]:
            members.update(*([*alias] for alias in self.key["aliases"] if members & set(alias)))
        return min(members)

    def mapped(self, entity: str) -> str | None:
        """The group of an entity `namespace/Kind/name`: kind, namespace and the filter on the name must agree."""
        *namespace, kind, name = entity.split("/")
        for identity, group in self.groups.items():
            same_place = not group.get("namespace") or namespace == [group["namespace"]]
            if group["kind"] == kind and same_place and any(re.match(pattern, name) for pattern in group["filter"]):
                return identity
        return None

    def component(self, identity: str | None) -> str | None:
        return None if identity is None else self.classes[identity]

    def path(self, pairs: Sequence[tuple[str | None, str | None]]) -> list[str]:
        """The components along propagations, without consecutive repetitions."""
        steps = [self.component(end) for pair in pairs for end in pair]
        known = [step for step in steps if step is not None]
        return [step for place, step in enumerate(known) if not place or known[place - 1] != step]

    def scores(self, answer: Document) -> dict[str, float]:
        roots = {self.classes[group["id"]] for group in self.key["groups"] if group.get("root_cause")}
        blamed = [self.mapped(e["name"]) for e in answer["entities"] if e["contributing_factor"]]
        found = [self.component(identity) for identity in blamed]
        right = [component for component in found if component in roots]
        truth_path = self.path([(step["source"], step["target"]) for step in self.key["propagations"]])
        model_path = self.path([(self.mapped(s["source"]), self.mapped(s["target"])) for s in answer["propagations"]])
        shared = _common(model_path, truth_path)
        first = self._first_impacted(truth_path)
        return {
            "root_cause_entity": _f1(len(right) / max(len(found), 1), len(set(right)) / len(roots)),
            "propagation_chain": _f1(shared / max(len(model_path), 1), shared / max(len(truth_path), 1)),
            "fault_localization_component_identification": float(first is None or first in model_path),
            "root_cause_proximity_no_fp": _f1(
                *(
                    sum(max((_nearness(truth_path, one, other) for other in others), default=0.0) for one in ones)
                    / max(len(ones), 1)
                    for ones, others in ((found, list(roots)), (list(roots), found))
                )
            ),
        }

    def _first_impacted(self, truth_path: list[str]) -> str | None:
        """The component of the first effect that is a failure; else the one after the root."""
        for step in self.key["propagations"]:
            if FAILURE.search(step["effect"]):
                return self.component(step["target"])
        return truth_path[1] if len(truth_path) > 1 else None


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _common(one: list[str], other: list[str]) -> int:
    """The length of the longest common subsequence."""
    best = [0] * (len(other) + 1)
    for left in one:
        row = [0]
        for place, right in enumerate(other):
            row.append(best[place] + 1 if left == right else max(best[place + 1], row[-1]))
        best = row
    return best[-1]


def _nearness(path: list[str], one: str | None, other: str | None) -> float:
    if one == other:
        return 1.0
    if one not in path or other not in path:
        return 0.0
    return 1 / (1 + abs(path.index(str(one)) - path.index(str(other))))


def example_name(group: Document) -> str:
    """A name in full that the group's filter accepts."""
    name = group["filter"][0].replace("-.*", "-6d5f7c9b8-x2v4z").replace(r"\b", "").replace("\\", "")
    return "/".join(filter(None, (group.get("namespace"), group["kind"], name)))


def truth_of(key: Document) -> Document:
    """The key as an answer of an agent."""
    names = {group["id"]: example_name(group) for group in key["groups"]}
    return {
        "entities": [
            {"name": names[group["id"]], "contributing_factor": bool(group.get("root_cause"))}
            for group in key["groups"]
        ],
        "propagations": [
            {"source": names[step["source"]], "target": names[step["target"]]} for step in key["propagations"]
        ],
    }


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> list[Document]:
    place = tmp_path_factory.mktemp("examples")
    unpack(place)
    return [yaml.safe_load(path.read_text()) for path in sorted(place.rglob("ground_truth.yaml"))]


def _wrong(key: Document) -> Iterator[Document]:
    """The truth with a victim blamed instead, and an answer that says nothing."""
    rules, truth = OriginalRules(key), truth_of(key)
    roots = {rules.classes[group["id"]] for group in key["groups"] if group.get("root_cause")}
    for entity in truth["entities"]:
        if rules.component(rules.mapped(entity["name"])) not in roots:
            yield {**truth, "entities": [{**entity, "contributing_factor": True}]}
    yield {"entities": [], "propagations": []}


def test_the_truth_gets_every_point(keys: list[Document]) -> None:
    assert len(keys) == 6
    for key in keys:
        assert set(OriginalRules(key).scores(truth_of(key)).values()) == {1.0}


def test_either_member_of_an_origin_is_right(keys: list[Document]) -> None:
    """The changed object and the component it makes misbehave are one group."""
    several = 0
    for key in keys:
        roots = [group for group in key["groups"] if group.get("root_cause")]
        rules = OriginalRules(key)
        assert len({rules.classes[group["id"]] for group in roots}) == 1
        several += len(roots) > 1
        for group in roots:
            alone = {"entities": [{"name": example_name(group), "contributing_factor": True}], "propagations": []}
            assert rules.scores(alone)["root_cause_entity"] == 1.0
    assert several, "some incident has a changed object beside the component"


def test_other_answers_lose(keys: list[Document]) -> None:
    for key in keys:
        for answer in _wrong(key):
            assert OriginalRules(key).scores(answer)["root_cause_entity"] == 0.0
