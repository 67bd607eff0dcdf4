"""Answers against the truth: shapes of answers, verdicts, collateral."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.conductor.errors import BadSubmission
from srearena.conductor.grading.baseline import Baseline, capture
from srearena.conductor.grading.collateral import compare
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.oracles.checks import Check
from srearena.conductor.oracles.detection import yes_or_no
from srearena.conductor.oracles.localization import parse_names
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.service.errors import ApiRefused, NotFound, TimedOut
from srearena.service.kubernetes import Kubernetes


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (["a", "b", "a"], ["a", "b"]),
        ("a, b", ["a", "b"]),
        ("[a]", ["a"]),
        (None, []),
        ([], []),
        (("a",), ["a"]),
    ],
)
def test_names_are_taken_as_people_write_them(answer: Any, names: list[str]) -> None:
    assert parse_names(answer) == names


@pytest.mark.parametrize("answer", [1, {"a": 1}, [1], ["x"] * 101, [["a"]], 1.5])
def test_what_is_no_list_of_names_is_refused(answer: Any) -> None:
    with pytest.raises(BadSubmission):
        parse_names(answer)


@pytest.mark.parametrize(
    ("word", "value"), [("Yes", True), ("yes.", True), ("NO", False), (True, True), ("false", False)]
)
def test_yes_and_no(word: Any, value: bool) -> None:
    assert yes_or_no(word) is value


@pytest.mark.parametrize("word", ["maybe", "", None, 1, ["Yes"], {}])
def test_neither_yes_nor_no(word: Any) -> None:
    with pytest.raises(BadSubmission):
        yes_or_no(word)


@pytest.mark.parametrize(
    ("answer", "passed", "score"),
    [({"success": True}, True, 1.0), ({"success": False, "accuracy": 50.0}, False, 0.5), (True, True, 1.0)],
)
def test_verdicts_of_other_peoples_oracles(answer: Any, passed: bool, score: float) -> None:
    verdict = Verdict.from_answer(answer)
    assert (verdict.passed, verdict.score) == (passed, score)


objects = st.dictionaries(
    st.sampled_from([("configmaps", "ns", name) for name in "abc"]),
    st.builds(lambda value: {"kind": "ConfigMap", "metadata": {}, "data": {"x": value}}, st.sampled_from("12")),
)


@given(objects, objects)
def test_differences_are_none_only_between_equals(first: dict[Any, Any], second: dict[Any, Any]) -> None:
    found = Baseline(first).differences(Baseline(second))
    assert (not found) == (first == second)


@given(objects, objects)
def test_an_agent_that_changes_nothing_has_no_collateral(before: dict[Any, Any], after_fault: dict[Any, Any]) -> None:
    assert compare(Baseline(before), Baseline(after_fault), Baseline(after_fault)) == []


EMPTY = cast(
    Problem,
    SimpleNamespace(
        kubernetes=SimpleNamespace(list=lambda resource: []),
        cluster=SimpleNamespace(wait=lambda seconds: None),
        baseline=None,
        handed_over=None,
        app=SimpleNamespace(namespaces=()),
    ),
)
"""A problem on a cluster without objects."""


class Gone(Check):
    name = "gone"

    def complaints(self, problem: Problem) -> list[str]:
        raise NotFound('deployments.apps "store" not found', 404)


def test_that_an_object_is_gone_is_a_complaint_and_no_failure_of_grading() -> None:
    oracle = MitigationOracle(EMPTY, checks=[Gone()])
    complaint = 'gone: deployments.apps "store" not found'
    assert oracle.first_complaint() == complaint
    assert oracle.evaluate(None).reasons == (complaint,)


TOKEN = "kubernetes.io/service-account-token"
LABELS = {"app": "web"}
SELECTING = {"selector": {"matchLabels": LABELS}}


class _Growing:
    """A cluster whose Deployment has its new replica set and pod only when the pods are listed."""

    def __init__(self) -> None:
        self._listed: list[str] = []

    def knows(self, resource: str) -> bool:
        return True

    def list(self, resource: str) -> list[Any]:
        self._listed.append(resource)
        generated = {"pods": ("Pod", "ReplicaSet", "r2"), "replicasets.apps": ("ReplicaSet", "Deployment", "d")}
        if resource == "deployments.apps":
            metadata = {"name": "web", "namespace": "default", "uid": "d"}
            return [{"kind": "Deployment", "metadata": metadata, "spec": SELECTING}]
        if resource not in generated or (resource == "replicasets.apps" and "pods" not in self._listed):
            return []
        kind, owner, uid = generated[resource]
        reference = {"apiVersion": "apps/v1", "kind": owner, "uid": uid, "controller": True}
        metadata = {"name": resource, "namespace": "default", "uid": "r2" if kind == "ReplicaSet" else "p"}
        owned = {**metadata, "labels": LABELS, "ownerReferences": [reference]}
        return [{"kind": kind, "metadata": owned, "spec": SELECTING}]


def test_what_is_made_during_a_capture_has_an_owner_in_it() -> None:
    captured = capture(cast(Kubernetes, _Growing()), ["default"])
    assert [key[2] for key in captured.objects] == ["web"]


class _Disguised:
    """A cluster with one Service account, and objects that say they were made by a controller."""

    def __init__(self, **marked: Any) -> None:
        self._marked = marked

    def knows(self, resource: str) -> bool:
        return True

    def list(self, resource: str) -> list[Any]:
        if resource == "serviceaccounts":
            return [{"kind": "ServiceAccount", "metadata": {"name": "own", "namespace": "default", "uid": "own"}}]
        obj = self._marked.get(resource.partition(".")[0])
        return [] if obj is None else [{**obj, "metadata": {"namespace": "default", "uid": "x", **obj["metadata"]}}]


def owned_by(api_version: str, kind: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "uid": "own", "controller": True}]}


@pytest.mark.parametrize(
    ("resource", "obj", "hidden"),
    [
        ("configmaps", {"kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"}}, True),
        ("roles", {"kind": "Role", "metadata": {"name": "kube-root-ca.crt"}}, False),
        ("services", {"kind": "Service", "metadata": {"name": "a", **owned_by("v1", "ServiceAccount")}}, False),
        ("services", {"kind": "Service", "metadata": {"name": "a", **owned_by("example.com/v1", "Shop")}}, False),
        ("pods", {"kind": "Pod", "metadata": {"name": "a", **owned_by("apps/v1", "ReplicaSet")}}, False),
        ("secrets", {"kind": "Secret", "type": TOKEN, "metadata": {"name": "a"}, "data": {"token": "x"}}, True),
        ("secrets", {"kind": "Secret", "type": TOKEN, "metadata": {"name": "a"}, "data": {"password": "x"}}, False),
    ],
)
def test_what_a_controller_makes_is_known_by_its_owner_and_not_by_its_name(
    resource: str, obj: dict[str, Any], hidden: bool
) -> None:
    captured = capture(cast(Kubernetes, _Disguised(**{resource: obj})), ["default"])
    names = {key[2] for key in captured.objects}
    assert names == ({"own"} if hidden else {"own", obj["metadata"]["name"]})


class _Collected:
    """A cluster whose Deployment was deleted a moment ago, and a pod that names an owner of an unknown kind."""

    def knows(self, resource: str) -> bool:
        return True

    def list(self, resource: str) -> list[Any]:
        owners = {
            "replicasets.apps": [("ReplicaSet", "web-1", "r", ("apps/v1", "Deployment", "d"))],
            "pods": [
                ("Pod", "web-1-x", "p", ("apps/v1", "ReplicaSet", "r")),
                ("Pod", "last-x", "q", ("apps/v1", "ReplicaSet", "s")),
                ("Pod", "planted", "t", ("example.com/v1", "Gardener", "g")),
            ],
        }
        return [
            {
                "kind": kind,
                "spec": SELECTING,
                "metadata": {
                    "name": name,
                    "namespace": "default",
                    "uid": uid,
                    "labels": LABELS,
                    "ownerReferences": [
                        {"apiVersion": owner[0], "kind": owner[1], "uid": owner[2], "controller": True}
                    ],
                },
            }
            for kind, name, uid, owner in owners.get(resource, ())
        ]


def test_what_the_garbage_collector_is_about_to_delete_is_deleted() -> None:
    captured = capture(cast(Kubernetes, _Collected()), ["default"])
    assert [key[2] for key in captured.objects] == ["planted"]


class Refused(Check):
    name = "refused"

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def complaints(self, problem: Problem) -> list[str]:
        raise self._failure


def test_what_keeps_the_grader_from_its_work_is_a_complaint_unless_the_server_failed() -> None:
    def verdict(failure: Exception) -> Verdict:
        return MitigationOracle(EMPTY, checks=[Refused(failure)]).evaluate(None)

    for failure in (ApiRefused("exceeded quota: q", 403), TimedOut("waited in vain for an old run to go")):
        assert verdict(failure).reasons == (f"refused: {failure}",)
    with pytest.raises(ApiRefused):
        verdict(ApiRefused("etcdserver: leader changed", 500))
