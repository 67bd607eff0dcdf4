"""Schemas of built-in and custom kinds."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.registry import schemas
from srearena.cluster.embedded.registry.schema import Schema, Shape, compile_structural
from srearena.cluster.embedded.registry.wire_forms import wire_form, zero_of
from tests.registry.cases import schema_of


def test_every_kind_compiles_to_its_last_field() -> None:
    seen: set[int] = set()
    kept: list[Schema] = []

    def walk(node: Schema) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        kept.append(node)
        wire_form(node)
        for field in node.fields.values():
            walk(field)
        if node.shape in (Shape.LIST, Shape.MAP):
            walk(node.element)

    for kind in schemas.kinds():
        found = schemas.for_kind(*kind)
        assert found is not None
        walk(found)
    assert len(seen) > 2000


def test_lists_and_maps_know_how_they_merge() -> None:
    pod = schema_of("Pod")
    containers = pod.at("spec", "containers")
    assert containers is not None
    assert (containers.list_type, containers.list_keys, containers.patch_key) == ("map", ("name",), "name")
    assert containers.patch_strategy == {"merge"}
    ports = pod.at("spec", "containers", "ports")
    assert ports is not None
    assert ports.list_keys == ("containerPort", "protocol")
    assert schemas.item_keys(ports) == (("containerPort", 0), ("protocol", "TCP"))
    selector = schema_of("Deployment").at("spec", "selector")
    assert selector is not None and selector.map_type == "atomic"
    strategy = schema_of("Deployment").at("spec", "strategy")
    assert strategy is not None and strategy.patch_strategy == {"retainKeys"}


def test_scalars_that_json_schema_cannot_tell_apart_are_told_apart() -> None:
    limits = schema_of("Pod").at("spec", "containers", "resources", "limits")
    assert limits is not None and limits.element.shape is Shape.QUANTITY
    surge = schema_of("Deployment").at("spec", "strategy", "rollingUpdate", "maxSurge")
    assert surge is not None and surge.shape is Shape.INT_OR_STRING


def test_definitions_are_found_by_name_reference_and_kind() -> None:
    by_name = schemas.definition("io.k8s.api.core.v1.Pod")
    assert by_name is schemas.definition("#/$defs/io.k8s.api.core.v1.Pod")
    assert by_name is schemas.for_kind("", "v1", "Pod")
    assert schemas.for_kind("apps", "v1", "Pod") is None
    with pytest.raises(KeyError):
        schemas.definition("no.such.Definition")


def test_resource_metrics_are_there_although_the_package_lacks_them() -> None:
    metrics = schemas.for_kind("metrics.k8s.io", "v1beta1", "PodMetrics")
    assert metrics is not None
    usage = metrics.at("containers", "usage")
    assert usage is not None and usage.element.shape is Shape.QUANTITY


def test_descriptions_are_read_again_on_demand() -> None:
    full = schemas.described()
    assert "description" in full["io.k8s.api.core.v1.Pod"]
    assert "description" in full["io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics"]


def test_structs_know_what_go_always_writes() -> None:
    assert zero_of(schema_of("Service")) == {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}
    container = schema_of("Pod").at("spec", "containers")
    assert container is not None
    form = wire_form(container.element)
    assert form.always == {"name": "", "resources": {}}
    assert "image" in form.fleeting and "livenessProbe" not in form.fleeting
    assert form.go_types["imagePullPolicy"] == "v1.PullPolicy"


def test_a_structural_schema_compiles_to_the_same_kind_of_node() -> None:
    ports = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port"],
        "items": {"type": "object", "properties": {"port": {"type": "integer", "default": 80}}},
    }
    properties = {
        "ports": ports,
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "size": {"x-kubernetes-int-or-string": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "template": {"type": "object", "x-kubernetes-embedded-resource": True},
    }
    root = schemas.for_custom({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
    found = {name: root.at("spec", name) for name in properties}
    assert [node.shape if node else None for node in found.values()] == [
        Shape.LIST,
        Shape.ANY,
        Shape.INT_OR_STRING,
        Shape.MAP,
        Shape.STRUCT,
    ]
    assert schemas.item_keys(found["ports"] or root) == (("port", 80),)
    assert root.at("metadata", "labels") is not None
    assert root.at("spec", "template", "metadata", "finalizers") is not None
    assert compile_structural({"type": "string"}).shape is Shape.STRING
