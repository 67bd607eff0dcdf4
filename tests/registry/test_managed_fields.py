"""Who owns which fields after creates, updates and patches."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.patch import field_sets
from srearena.cluster.embedded.registry.patch.managed_fields import (
    reset_fields,
    same_owners,
    update_managed_fields,
)
from tests.registry.cases import copy, deployment, json_values, schema_of

DEPLOYMENT = schema_of("Deployment")


def write(old: Obj | None, new: Obj, manager: str, *, at: int = 0, subresource: str = "") -> Obj:
    result: Obj = copy(new)
    result["metadata"]["managedFields"] = update_managed_fields(
        old,
        result,
        manager=manager,
        api_version="apps/v1",
        time=f"2024-01-01T00:00:{at:02d}Z",
        schema=DEPLOYMENT,
        subresource=subresource,
    )
    result["metadata"]["uid"] = "u"
    return result


def entries(obj: Obj) -> list[tuple[str, str, Any]]:
    return [(e["manager"], e.get("subresource", ""), e["fieldsV1"]) for e in obj["metadata"]["managedFields"]]


def test_the_creator_owns_what_was_set_but_not_the_identity() -> None:
    created = write(None, deployment(), "kubectl-create")
    ((manager, _, fields),) = entries(created)
    assert manager == "kubectl-create"
    assert "f:metadata" not in fields
    assert fields["f:spec"]["f:selector"] == {}
    container = fields["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"web"}']
    assert container["f:ports"]['k:{"containerPort":80,"protocol":"TCP"}'] == {".": {}, "f:containerPort": {}}
    assert container["f:resources"] == {}
    entry = created["metadata"]["managedFields"][0]
    assert list(entry) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"]


def test_whoever_changes_a_field_takes_it_over() -> None:
    created = write(None, deployment(), "a")
    changed = copy(created)
    changed["spec"]["replicas"] = 5
    scaled = write(created, changed, "b", at=1)
    assert [manager for manager, _, _ in entries(scaled)] == ["a", "b"]
    assert entries(scaled)[1][2] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in entries(scaled)[0][2]["f:spec"]


def test_what_is_removed_is_nobodys() -> None:
    created = write(None, deployment(paused=True, minReadySeconds=5), "a")
    changed = copy(created)
    del changed["spec"]["minReadySeconds"]
    assert "f:minReadySeconds" not in str(entries(write(created, changed, "b")))
    assert [manager for manager, _, _ in entries(write(created, changed, "b"))] == ["a"]


def test_a_write_that_changes_nothing_keeps_owners_and_times() -> None:
    created = write(None, deployment(), "a")
    again = copy(created)
    again["metadata"]["resourceVersion"] = "9"
    assert write(created, again, "b", at=30)["metadata"]["managedFields"] == created["metadata"]["managedFields"]


def test_zero_values_that_go_leaves_out_belong_to_nobody() -> None:
    created = write(None, deployment(paused=False, minReadySeconds=0, replicas=0), "a")
    spec = entries(created)[0][2]["f:spec"]
    assert "f:paused" not in spec and "f:minReadySeconds" not in spec
    assert spec["f:replicas"] == {}


def test_subresources_are_owners_of_their_own() -> None:
    created = write(None, deployment(), "a")
    changed = {**copy(created), "status": {"replicas": 1}}
    written = write(created, changed, "a", at=1, subresource="status")
    assert [(manager, sub) for manager, sub, _ in entries(written)] == [("a", ""), ("a", "status")]
    assert entries(written)[1][2] == {"f:status": {"f:replicas": {}}}


def test_clients_that_forget_managed_fields_do_not_lose_them() -> None:
    created = write(None, deployment(), "a")
    forgot = copy(created)
    del forgot["metadata"]["managedFields"]
    assert write(created, forgot, "b")["metadata"]["managedFields"] == created["metadata"]["managedFields"]
    nonsense = copy(created)
    nonsense["metadata"]["managedFields"] = [{"manager": "x", "operation": "Steal"}]
    assert write(created, nonsense, "b")["metadata"]["managedFields"] == created["metadata"]["managedFields"]


def test_an_empty_list_or_an_empty_entry_gives_up_tracking() -> None:
    created = write(None, deployment(), "a")
    for reset in ([], [{}]):
        cleared = copy(created)
        cleared["metadata"]["managedFields"] = reset
        assert write(created, cleared, "b")["metadata"]["managedFields"] == []


def test_a_client_may_hand_its_fields_to_another() -> None:
    created = write(None, deployment(), "kubectl-client-side-apply")
    edited = copy(created)
    edited["metadata"]["managedFields"][0].update(manager="kubectl", operation="Apply")
    moved = write(created, edited, "kubectl", at=3)
    assert [(e["manager"], e["operation"]) for e in moved["metadata"]["managedFields"]] == [("kubectl", "Apply")]
    through_status = write(created, edited, "kubectl", subresource="status")
    assert through_status["metadata"]["managedFields"] == created["metadata"]["managedFields"]


def test_times_alone_are_no_difference() -> None:
    one, other = (write(None, deployment(), "a", at=at)["metadata"]["managedFields"] for at in (1, 2))
    assert one != other
    assert same_owners(one, other)
    assert not same_owners(one, [])


def test_only_ten_managers_of_updates_are_kept_apart() -> None:
    obj = write(None, deployment(), "m00")
    for number in range(1, 15):
        changed = copy(obj)
        changed["metadata"].setdefault("labels", {})[f"l{number}"] = "x"
        obj = write(obj, changed, f"m{number:02d}", at=number)
    managers = [manager for manager, _, _ in entries(obj)]
    assert len(managers) == 10
    assert managers[0] == "ancient-changes"
    assert managers[-1] == "m14"
    everything: Any = {}
    for _, _, fields in entries(obj):
        everything = field_sets.union(everything, fields)
    assert {f"f:l{n}" for n in range(1, 15)} <= set(everything["f:metadata"]["f:labels"])


def test_fields_that_an_endpoint_does_not_write_are_not_owned_through_it() -> None:
    new = {**deployment(), "status": {"replicas": 3}}
    owned = update_managed_fields(
        None,
        new,
        manager="a",
        api_version="apps/v1",
        time="2024-01-01T00:00:00Z",
        schema=DEPLOYMENT,
        reset=reset_fields(["status"]),
    )
    assert set(owned[0]["fieldsV1"]) == {"f:spec"}


FIELDS = field_sets.FieldSet


def _members(fields: FIELDS) -> set[tuple[str, ...]]:
    return set(field_sets.paths(fields))


def _some_set(value: Any) -> FIELDS:
    """Any JSON as a set of fields: each key a field, every value below it."""
    if not isinstance(value, dict):
        return {}
    found = {f"f:{key}": _some_set(item) for key, item in value.items()}
    if found and "a" in value:
        found[field_sets.SELF] = {}
    return found


def _top(value: Any) -> FIELDS:
    return {key: node for key, node in _some_set(value).items() if key != field_sets.SELF}


@given(json_values, json_values)
def test_field_sets_obey_the_laws_of_sets(one: Any, other: Any) -> None:
    left, right = _top(one), _top(other)
    before = copy([left, right])
    assert _members(field_sets.union(left, right)) == _members(left) | _members(right)
    assert _members(field_sets.difference(left, right)) == _members(left) - _members(right)
    assert _members(field_sets.intersection(left, right)) == _members(left) & _members(right)
    gone = _members(right)
    kept = {path for path in _members(left) if not any(path[:n] in gone for n in range(1, len(path) + 1))}
    assert _members(field_sets.recursive_difference(left, right)) == kept
    assert _members(field_sets.ordered(left)) == _members(left)
    assert field_sets.parse(left) == left
    assert [left, right] == before


def test_paths_print_as_conflicts_show_them() -> None:
    path = ("f:spec", 'k:{"containerPort":80,"protocol":"TCP"}', 'v:"x"', "i:3")
    assert field_sets.path_text(path) == '.spec[containerPort=80,protocol="TCP"][="x"][3]'
