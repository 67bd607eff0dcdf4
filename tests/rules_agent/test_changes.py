"""Changes are judged by what they touch: what teams roll out every day is innocent."""

from __future__ import annotations

from typing import Any

import pytest

from clients.rules.changes import edited, suspicious_revision
from tests.rules_agent.systems import CHANGED, container, deployment, managed, service, system

OLD: dict[str, Any] = {"containers": [container(env=[{"name": "STORE", "value": "store"}])]}


def changed(**fields: Any) -> dict[str, Any]:
    return {"containers": [container(**{"env": [{"name": "STORE", "value": "store"}], **fields})]}


@pytest.mark.parametrize(
    "pod",
    [
        changed(env=[{"name": "STORE", "value": "store"}, {"name": "BUILD_ID", "value": "7"}]),
        {**OLD, "terminationGracePeriodSeconds": 40},
        {**OLD},
    ],
)
def test_an_added_variable_or_a_grace_period_is_innocent(pod: dict[str, Any]) -> None:
    api = deployment("api", history=(OLD,), **pod)
    assert suspicious_revision(system(api), api) is None


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        (changed(image="registry/program:2.0"), "image"),
        (changed(command=["sh"]), "command"),
        (changed(env=[{"name": "STORE", "value": "elsewhere"}]), "env"),
        (changed(env=[]), "env"),
        (changed(env=[{"name": "STORE", "value": "store"}, {"name": "GOGC", "value": "1"}]), "env"),
        ({**OLD, "nodeSelector": {"disk": "ssd"}}, "nodeSelector"),
        ({"containers": [*OLD["containers"], container(name="sidecar")]}, "containers"),
    ],
)
def test_what_a_program_runs_by_is_suspicious(pod: dict[str, Any], field: str) -> None:
    api = deployment("api", history=(OLD,), **pod)
    revision = suspicious_revision(system(api), api)
    assert revision is not None
    assert [field in map(str, one.path) for one in revision.differences] == [True]


def test_a_change_that_was_taken_back_is_not_suspicious() -> None:
    api = deployment("api", history=(OLD, changed(image="registry/program:2.0")), **OLD)
    assert suspicious_revision(system(api), api) is None


def test_other_values_of_a_variable_that_came_later_than_the_program_are_innocent() -> None:
    def built(number: str) -> dict[str, Any]:
        return changed(env=[{"name": "STORE", "value": "store"}, {"name": "BUILD_ID", "value": number}])

    api = deployment("api", history=(OLD, built("1")), **built("2"))
    assert suspicious_revision(system(api), api) is None


def test_innocent_revisions_after_the_breaking_one_do_not_hide_it() -> None:
    broken = changed(image="registry/program:2.0")
    later = {"containers": [{**broken["containers"][0]}], "terminationGracePeriodSeconds": 40}
    api = deployment("api", history=(OLD, broken), **later)
    revision = suspicious_revision(system(api), api)
    assert revision is not None
    assert [one.old for one in revision.differences] == ["registry/program:1.0"]


def test_edits_are_those_of_other_managers_than_the_first() -> None:
    assert not edited(service("api"), "spec")
    entry = managed({"f:spec": {"f:selector": {}}})
    changed_service = service("api", entries=(entry,))
    assert edited(changed_service, "spec", "selector") and not edited(changed_service, "spec", "ports")
    assert entry["time"] == CHANGED
