"""Server-side apply: ownership, conflicts, and what giving something up means."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import schemas
from srearena.cluster.embedded.registry.errors import ApiError, ApplyConflict, BadRequest
from srearena.cluster.embedded.registry.field_validation import decode
from srearena.cluster.embedded.registry.patch.apply import LAST_APPLIED, ApplyRejected, server_side_apply
from srearena.cluster.embedded.registry.patch.managed_fields import update_managed_fields
from tests.registry.cases import copy, deployment, json_objects, schema_of

DEPLOYMENT = schema_of("Deployment")


def apply(live: Obj | None, config: Obj, manager: str = "me", *, force: bool = False, at: int = 0) -> Obj:
    result = server_side_apply(
        live,
        config,
        manager=manager,
        force=force,
        api_version="apps/v1",
        kind="Deployment",
        time=f"2024-01-01T00:00:{at:02d}Z",
        schema=DEPLOYMENT,
    )
    result = decode(result, DEPLOYMENT).obj
    result["metadata"]["uid"] = "u"
    return result


def update(live: Obj | None, new: Obj, manager: str) -> Obj:
    result = decode(new, DEPLOYMENT).obj
    result["metadata"]["managedFields"] = update_managed_fields(
        live, result, manager=manager, api_version="apps/v1", time="2024-01-01T00:00:00Z", schema=DEPLOYMENT
    )
    result["metadata"]["uid"] = "u"
    return result


def owners(obj: Obj) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"]["managedFields"]}


def config(**spec: Any) -> Obj:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    }


def test_applying_creates_and_owns_exactly_what_was_said() -> None:
    created = apply(None, config(replicas=3, paused=False))
    assert created["spec"]["replicas"] == 3
    assert "paused" not in created["spec"]
    assert owners(created) == {"me": {"f:spec": {"f:paused": {}, "f:replicas": {}}}}


def test_what_is_no_longer_said_goes_unless_somebody_else_owns_it() -> None:
    first = apply(None, config(replicas=3, minReadySeconds=5))
    shared = apply(first, config(minReadySeconds=5), "other")
    left = apply(shared, config())
    assert left["spec"]["minReadySeconds"] == 5
    assert "replicas" not in left["spec"]
    assert owners(left) == {"me": {"f:spec": {}}, "other": {"f:spec": {"f:minReadySeconds": {}}}}


def test_changing_what_another_owns_is_a_conflict_that_names_the_field() -> None:
    live = update(None, deployment(), "kubectl-client-side-apply")
    with pytest.raises(ApplyConflict) as conflict:
        apply(live, config(replicas=5))
    assert conflict.value.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas'
    )
    assert conflict.value.status()["details"] == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "kubectl-client-side-apply" using apps/v1',
                "field": ".spec.replicas",
            }
        ]
    }
    assert (conflict.value.code, conflict.value.reason) == (409, "Conflict")


def test_several_conflicts_are_listed_by_manager() -> None:
    live = apply(apply(None, config(replicas=1), "b"), config(minReadySeconds=1, paused=True), "a")
    with pytest.raises(ApplyConflict) as conflict:
        apply(live, config(replicas=2, minReadySeconds=2, paused=False))
    assert conflict.value.message == (
        'Apply failed with 3 conflicts: conflicts with "a":\n- .spec.minReadySeconds\n- .spec.paused\n'
        'conflicts with "b":\n- .spec.replicas'
    )


def test_force_takes_the_field_over() -> None:
    live = apply(None, config(replicas=1), "other")
    taken = apply(live, config(replicas=2), force=True)
    assert taken["spec"]["replicas"] == 2
    assert list(owners(taken)) == ["me"]


def test_wanting_the_same_is_owning_together() -> None:
    live = apply(None, config(replicas=1), "other")
    both = apply(live, config(replicas=1))
    assert set(owners(both)) == {"me", "other"}
    with pytest.raises(ApplyConflict):
        apply(both, config(replicas=2))
    assert apply(apply(both, config()), config(), "other")["spec"].get("replicas") is None


def test_list_items_are_owned_one_by_one() -> None:
    def containers(*found: Obj) -> Obj:
        return config(template={"spec": {"containers": list(found)}})

    live = apply(None, containers({"name": "web", "image": "a", "ports": [{"containerPort": 80}]}))
    live = apply(live, containers({"name": "side", "image": "b"}), "mesh")
    assert [c["name"] for c in live["spec"]["template"]["spec"]["containers"]] == ["web", "side"]
    live = apply(live, containers({"name": "web", "image": "c"}))
    found = {c["name"]: c for c in live["spec"]["template"]["spec"]["containers"]}
    assert found["web"] == {"name": "web", "image": "c", "resources": {}}
    assert found["side"] == {"name": "side", "image": "b", "resources": {}}
    port = {"containerPort": 80, "protocol": "TCP", "name": "http"}
    named = apply(live, containers({"name": "web", "image": "c", "ports": [port]}))
    spelled_out = containers({"name": "web", "image": "c", "ports": [{"containerPort": 80, "name": "http"}]})
    again = apply(named, spelled_out)
    ports = {c["name"]: c for c in again["spec"]["template"]["spec"]["containers"]}["web"]["ports"]
    assert [port["containerPort"] for port in ports] == [80]


def test_atomic_lists_and_maps_are_owned_whole() -> None:
    live = apply(None, config(selector={"matchLabels": {"a": "b"}}))
    assert owners(live)["me"] == {"f:spec": {"f:selector": {}}}
    with pytest.raises(ApplyConflict, match=r"\.spec\.selector"):
        apply(live, config(selector={"matchLabels": {"a": "b", "c": "d"}}), "other")


def test_objects_from_before_the_first_apply_have_an_owner() -> None:
    live = {**deployment(), "metadata": {"name": "web", "namespace": "default", "uid": "u"}}
    with pytest.raises(ApplyConflict, match=r'conflict with "before-first-apply" using apps/v1: \.spec\.replicas'):
        apply(live, config(replicas=7))
    assert "before-first-apply" in owners(apply(live, config(replicas=3)))


def test_kubectl_takes_over_what_its_own_annotation_says() -> None:
    configuration = deployment()
    live = copy(configuration)
    live["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(configuration)}
    live = update(None, live, "kubectl-client-side-apply")
    changed = deployment(replicas=9)
    with pytest.raises(ApplyConflict):
        apply(live, changed, "me")
    taken = apply(live, changed, "kubectl")
    assert taken["spec"]["replicas"] == 9
    assert '"replicas":9' in taken["metadata"]["annotations"][LAST_APPLIED]


def test_kubectls_move_from_client_side_to_server_side_apply_loses_nothing() -> None:
    live = update(None, deployment(), "kubectl-client-side-apply")
    migrated = copy(live)
    migrated["metadata"]["managedFields"][0].update(manager="kubectl", operation="Apply")
    live = update(live, migrated, "kubectl")
    applied = apply(live, config(replicas=3), "kubectl")
    assert applied["spec"]["replicas"] == 3
    assert not applied["spec"]["template"]["spec"].get("containers")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "Pod"}, "invalid object type: apps/v1, Kind=Pod"),
        ({"apiVersion": "v1"}, "invalid object type: /v1, Kind=Deployment"),
        ({"metadata": {"name": "x", "managedFields": []}}, "metadata.managedFields must be nil"),
    ],
)
def test_configurations_of_something_else_are_refused(change: Obj, message: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        apply(None, {**config(), **change})
    assert refusal.value.message == message


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"foo": 1}, ".spec.foo: field not declared in schema"),
        ({"replicas": "3"}, ".spec.replicas: expected numeric (int or float), got string"),
        ({"paused": 1}, ".spec.paused: expected boolean, got &{1}"),
        ({"selector": []}, ".spec.selector: expected map, got &{[]}"),
        (
            {"template": {"metadata": {"labels": {"a": 1}}}},
            ".spec.template.metadata.labels.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            {"template": {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}},
            '.spec.template.spec.containers: duplicate entries for key [name="a"]',
        ),
    ],
)
def test_configurations_that_do_not_fit_the_schema_are_refused(spec: Obj, message: str) -> None:
    with pytest.raises(ApplyRejected) as refusal:
        apply(None, config(**spec))
    prefix = "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
    assert refusal.value.message == prefix + message


def test_custom_resources_apply_by_their_schema() -> None:
    rules = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["host"],
        "items": {"type": "object", "properties": {"host": {"type": "string"}, "port": {"type": "integer"}}},
    }
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {"type": "object", "properties": {"rules": rules, "free": free}}
    schema = schemas.for_custom({"type": "object", "properties": {"spec": spec}})

    def put(live: Obj | None, manager: str, **said: Any) -> Obj:
        body = {"apiVersion": "x.io/v1", "kind": "Route", "metadata": {"name": "r"}, "spec": said}
        found = server_side_apply(
            live, body, manager=manager, force=False, api_version="x.io/v1", kind="Route", time="t", schema=schema
        )
        found["metadata"]["uid"] = "u"
        return found

    live = put(None, "a", rules=[{"host": "x", "port": 1}], free={"deep": {"list": [1, 2]}})
    live = put(live, "b", rules=[{"host": "y", "port": 2}])
    assert sorted(rule["host"] for rule in live["spec"]["rules"]) == ["x", "y"]
    assert owners(live)["a"]["f:spec"]["f:free"] == {"f:deep": {".": {}, "f:list": {}}}
    with pytest.raises(ApplyConflict, match=r'\.spec\.rules\[host="x"\]\.port'):
        put(live, "b", rules=[{"host": "x", "port": 3}])


# Nothing empty: an apply that empties what it says is to be there takes it away, and brings it back the next time.
labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), min_size=1, max_size=3)
container = st.fixed_dictionaries(
    {"name": st.sampled_from(["p", "q", "r"])},
    optional={
        "image": st.sampled_from("xyz"),
        "args": st.lists(st.sampled_from("xy"), min_size=1, max_size=2),
        "ports": st.lists(
            st.fixed_dictionaries(
                {"containerPort": st.integers(1, 3)}, optional={"protocol": st.sampled_from(["TCP", "UDP"])}
            ),
            min_size=1,
            max_size=2,
            unique_by=lambda port: (port["containerPort"], port.get("protocol", "TCP")),
        ),
    },
)
configs = st.builds(
    lambda metadata, spec: {**config(**spec), "metadata": {"name": "web", "namespace": "default", **metadata}},
    st.fixed_dictionaries(
        {}, optional={"labels": labels, "finalizers": st.lists(st.sampled_from("fg"), min_size=1, unique=True)}
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "replicas": st.integers(0, 3),
            "paused": st.just(True),
            "selector": st.fixed_dictionaries({"matchLabels": labels}),
            "template": st.fixed_dictionaries(
                {
                    "spec": st.fixed_dictionaries(
                        {"containers": st.lists(container, min_size=1, max_size=3, unique_by=lambda c: c["name"])}
                    )
                }
            ),
        },
    ),
)


@given(configs, configs)
@settings(deadline=None)
def test_applying_twice_is_applying_once(first: Obj, second: Obj) -> None:
    live = apply(apply(None, first), second, at=1)
    assert apply(live, second, at=2) == live


@given(configs, configs, configs)
@settings(deadline=None)
def test_force_always_wins(theirs: Obj, others: Obj, mine: Obj) -> None:
    live = apply(apply(None, theirs, "a"), others, "b", force=True)
    won = apply(live, mine, "me", force=True)
    for key in ("replicas", "selector"):
        if key in mine["spec"]:
            assert won["spec"][key] == mine["spec"][key]
    for key, value in mine["metadata"].get("labels", {}).items():
        assert won["metadata"]["labels"][key] == value
    assert apply(won, mine, "me") == won


@given(configs, configs)
@settings(deadline=None)
def test_without_conflict_both_get_what_they_said(mine: Obj, theirs: Obj) -> None:
    live = apply(None, mine, "a")
    try:
        both = apply(live, theirs, "b")
    except ApplyConflict as conflict:
        assert conflict.causes
        return
    for configuration in (mine, theirs):
        for key, value in configuration["metadata"].get("labels", {}).items():
            assert both["metadata"]["labels"][key] == value
    # Once both have left, nothing that could be owned remains.
    empty = apply(apply(both, config(), "a"), config(), "b")
    assert not empty["metadata"].get("labels")
    assert not empty["spec"].get("template", {}).get("spec", {}).get("containers")


@given(json_objects, st.booleans())
@settings(deadline=None, max_examples=200)
def test_any_configuration_applies_or_is_a_proper_refusal(junk: Any, nested: bool) -> None:
    live = update(None, deployment(), "a")
    body = {**config(), "spec": junk} if nested else {**config(), **junk}
    before = copy([live, body])
    try:
        apply(live, body, force=True)
    except ApiError as refusal:
        assert 400 <= refusal.code < 500
    assert [live, body] == before
