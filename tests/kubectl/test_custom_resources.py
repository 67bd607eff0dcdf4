"""Kinds of one's own: served as soon as they are defined, checked by their schema, gone with their definition."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .operator import Operator

BACKUP_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["database"],
            "properties": {
                "database": {"type": "string", "pattern": "^[a-z]+$"},
                "replicas": {"type": "integer", "minimum": 0, "maximum": 5, "default": 1},
                "schedule": {"type": "string", "default": "daily", "enum": ["hourly", "daily"]},
                "targets": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "keep": {"type": "integer", "default": 7}},
                    },
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string"},
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
            },
        },
    },
}


def definition(schema: dict[str, Any] | None = None, **version: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "backups.acme.io"},
        "spec": {
            "group": "acme.io",
            "scope": "Namespaced",
            "names": {"plural": "backups", "singular": "backup", "kind": "Backup", "shortNames": ["bk"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema or BACKUP_SCHEMA},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                    "additionalPrinterColumns": [
                        {"name": "Database", "type": "string", "jsonPath": ".spec.database"},
                        {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                        {"name": "Schedule", "type": "string", "jsonPath": ".spec.schedule", "priority": 1},
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                    **version,
                }
            ],
        },
    }


def backup(name: str = "nightly", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "acme.io/v1",
        "kind": "Backup",
        "metadata": {"name": name},
        "spec": {"database": "orders", **spec},
    }


@pytest.fixture
def backups(operator: Operator) -> Operator:
    """A cluster that knows what a Backup is."""
    operator.apply(definition())
    operator.wait(2)
    operator.kubectl("wait", "--for=condition=Established", "crd/backups.acme.io")
    return operator


def test_a_kind_nobody_defined_is_unknown(operator: Operator) -> None:
    assert 'no matches for kind "Backup" in version "acme.io/v1"' in operator.fails(
        "apply", "-f", "-", stdin=json.dumps(backup())
    )
    assert 'the server doesn\'t have a resource type "backups"' in operator.fails("get", "backups")


def test_a_new_kind_is_served_like_any_other(backups: Operator) -> None:
    listed = backups.kubectl("api-resources", "--api-group=acme.io")
    assert listed.splitlines()[1].split() == ["backups", "bk", "acme.io/v1", "true", "Backup"]
    assert backups.row("apiservice", "v1.acme.io")["SERVICE"] == "Local"
    backups.apply(backup())
    found = backups.get("bk", "nightly")
    assert found["spec"] == {"database": "orders", "replicas": 1, "schedule": "daily"}, "defaults are filled in"
    assert found["metadata"]["generation"] == 1
    explained = backups.kubectl("explain", "backup.spec.schedule")
    assert "KIND:       Backup" in explained
    backups.kubectl("label", "backup", "nightly", "team=data")
    assert backups.kubectl("get", "backups", "-l", "team=data", "-o", "name") == "backup.acme.io/nightly\n"
    backups.kubectl("delete", "backup", "nightly")
    assert "No resources found" in backups.run("get", "backups").err


def test_its_columns_are_printed(backups: Operator) -> None:
    backups.apply(backup())
    assert list(backups.row("backup", "nightly")) == ["NAME", "DATABASE", "PHASE", "AGE"]
    wide = backups.row("backup", "nightly", "-o", "wide")
    assert (wide["DATABASE"], wide["PHASE"], wide["SCHEDULE"]) == ("orders", "", "daily")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"database": 7}, 'spec.database: Invalid value: "integer": spec.database in body must be of type string'),
        (
            {"database": "Or-ders"},
            "spec.database: Invalid value: \"Or-ders\": spec.database in body should match '^[a-z]+$'",
        ),
        ({"replicas": 9}, "spec.replicas: Invalid value: 9: spec.replicas in body should be less than or equal to 5"),
        ({"schedule": "weekly"}, 'spec.schedule: Unsupported value: "weekly": supported values: "hourly", "daily"'),
        ({"targets": [{"keep": 1}]}, "spec.targets[0].name: Required value"),
    ],
)
def test_what_the_schema_forbids_is_refused(backups: Operator, spec: dict[str, Any], problem: str) -> None:
    refusal = backups.fails("create", "-f", "-", stdin=json.dumps(backup(**spec)))
    assert refusal.startswith('The Backup "nightly" is invalid:')
    assert problem in refusal


def test_a_missing_field_is_required(backups: Operator) -> None:
    empty = {**backup(), "spec": {}}
    assert 'The Backup "nightly" is invalid: spec.database: Required value' in backups.fails(
        "create", "-f", "-", stdin=json.dumps(empty)
    )


def test_unknown_fields_are_refused_or_dropped(backups: Operator) -> None:
    odd = json.dumps(backup(colour="blue", targets=[{"name": "s3"}]))
    refusal = backups.fails("create", "-f", "-", stdin=odd)
    assert 'unknown field "spec.colour"' in refusal
    lax = backups.run("create", "--validate=ignore", "-f", "-", stdin=odd)
    assert lax.code == 0, lax.err
    assert backups.get("backup", "nightly")["spec"] == {
        "database": "orders",
        "replicas": 1,
        "schedule": "daily",
        "targets": [{"name": "s3", "keep": 7}],
    }


def test_status_is_written_apart_from_spec(backups: Operator) -> None:
    backups.apply({**backup(), "status": {"phase": "Forged"}})
    assert "status" not in backups.get("backup", "nightly")
    patch = '{"status":{"phase":"Running"},"spec":{"database":"other"}}'
    backups.kubectl("patch", "backup", "nightly", "--subresource=status", "--type=merge", "-p", patch)
    found = backups.get("backup", "nightly")
    assert found["status"] == {"phase": "Running"}
    assert found["spec"]["database"] == "orders"
    assert found["metadata"]["generation"] == 1
    backups.kubectl(
        "patch", "backup", "nightly", "--type=merge", "-p", '{"spec":{"replicas":2},"status":{"phase":"x"}}'
    )
    found = backups.get("backup", "nightly")
    assert (found["spec"]["replicas"], found["status"]["phase"], found["metadata"]["generation"]) == (2, "Running", 2)
    assert backups.row("backup", "nightly")["PHASE"] == "Running"


def test_it_can_be_scaled(backups: Operator) -> None:
    backups.apply(backup())
    assert backups.kubectl("scale", "backup/nightly", "--replicas=3") == "backup.acme.io/nightly scaled\n"
    assert backups.get("backup", "nightly")["spec"]["replicas"] == 3
    scale = backups.get("backup", "nightly", "--subresource=scale")
    assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 3)


def test_a_change_of_the_schema_holds_from_then_on(backups: Operator) -> None:
    backups.apply(backup())
    stricter = json.loads(json.dumps(BACKUP_SCHEMA))
    stricter["properties"]["spec"]["properties"]["owner"] = {"type": "string", "default": "nobody"}
    backups.apply(definition(stricter))
    backups.wait(2)
    backups.kubectl("label", "backup", "nightly", "touched=yes")
    assert backups.get("backup", "nightly")["spec"]["owner"] == "nobody"
    backups.kubectl("patch", "backup", "nightly", "--type=merge", "-p", '{"spec":{"owner":"me"}}')
    assert backups.get("backup", "nightly")["spec"]["owner"] == "me"


def test_more_than_one_version(operator: Operator) -> None:
    manifest = definition()
    old = json.loads(json.dumps(manifest["spec"]["versions"][0]))
    old |= {"name": "v1beta1", "storage": False, "deprecated": True}
    manifest["spec"]["versions"].append(old)
    operator.apply(manifest)
    operator.wait(2)
    operator.apply(backup())
    result = operator.run("get", "backups.v1beta1.acme.io", "nightly", "-o", "jsonpath={.apiVersion}")
    assert result.out == "acme.io/v1beta1"
    assert "Warning: acme.io/v1beta1 Backup is deprecated" in result.err
    assert operator.get("crd", "backups.acme.io")["status"]["storedVersions"] == ["v1"]
    manifest["spec"]["versions"][1]["served"] = False
    operator.apply(manifest)
    operator.wait(2)
    assert operator.run("get", "backups.v1beta1.acme.io").code != 0


def test_deleting_the_definition_deletes_every_object_first(backups: Operator) -> None:
    backups.apply(backup("one"), backup("two"))
    backups.kubectl("patch", "backup", "two", "--type=merge", "-p", '{"metadata":{"finalizers":["acme.io/keep"]}}')
    backups.kubectl("delete", "crd", "backups.acme.io", "--wait=false")
    backups.wait(10)
    terminating = backups.condition("Terminating", "crd", "backups.acme.io")
    assert (terminating["status"], terminating["reason"]) == ("True", "InstanceDeletionInProgress")
    assert [b["metadata"]["name"] for b in backups.get("backups")["items"]] == ["two"]
    refusal = backups.fails("create", "-f", "-", stdin=json.dumps(backup("three")))
    assert "create not allowed while custom resource definition is terminating" in refusal
    backups.kubectl("patch", "backup", "two", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    backups.wait(20)
    assert backups.run("get", "crd", "backups.acme.io").code != 0
    assert "the server could not find the requested resource" in backups.fails("get", "backups")


def test_a_definition_that_makes_no_sense_is_refused(operator: Operator) -> None:
    unstructured = {"type": "object", "properties": {"spec": {"properties": {"a": {"type": "string"}}}}}
    refusal = operator.fails("apply", "-f", "-", stdin=json.dumps(definition(unstructured)))
    assert (
        "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object "
        "fields"
    ) in refusal
    misnamed = definition()
    misnamed["metadata"]["name"] = "backup.acme.io"
    refusal = operator.fails("apply", "-f", "-", stdin=json.dumps(misnamed))
    assert 'metadata.name: Invalid value: "backup.acme.io": must be spec.names.plural+"."+spec.group' in refusal


def test_names_that_are_taken_are_not_accepted(backups: Operator) -> None:
    rival = definition()
    rival["metadata"]["name"] = "savings.acme.io"
    rival["spec"]["names"] = {"plural": "savings", "singular": "saving", "kind": "Backup"}
    backups.apply(rival)
    backups.wait(2)
    accepted = backups.condition("NamesAccepted", "crd", "savings.acme.io")
    assert (accepted["status"], accepted["reason"]) == ("False", "ListKindConflict")
    assert accepted["message"] == '"BackupList" is already in use'
    assert backups.condition("Established", "crd", "savings.acme.io")["status"] == "False"
