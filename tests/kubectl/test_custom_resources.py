"""Kinds that did not exist a moment ago: defined, validated, shown, scaled and taken away again."""

from __future__ import annotations

import json

from .operator import Operator

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Colour, type: string, jsonPath: .spec.colour}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [colour]
            properties:
              colour: {type: string, enum: [red, green, blue]}
              replicas: {type: integer, minimum: 0, maximum: 9, default: 1}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, size: {type: integer}}
          status:
            type: object
            properties: {replicas: {type: integer}, phase: {type: string}}
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
WIDGET = """
apiVersion: example.com/v1
kind: Widget
metadata: {name: one}
spec: {colour: red}
"""


def defined(operator: Operator) -> Operator:
    operator.apply(DEFINITION)
    operator.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=10s")
    return operator


def test_a_kind_is_born_and_behaves_like_any_other(operator: Operator) -> None:
    assert 'no matches for kind "Widget"' in operator.fails("apply", "-f", "-", stdin=WIDGET)
    defined(operator)
    operator.apply(WIDGET)
    assert operator.columns("wd")[:2] == [
        ["NAME", "COLOUR", "REPLICAS"],
        ["one", "red", "1"],
    ], "the definition's columns, and its default filled in"
    assert "widgets" in operator.kubectl("api-resources", "--api-group=example.com")
    assert "colour" in operator.kubectl("explain", "widget.spec")
    assert "widget.example.com/one" in operator.kubectl("get", "all")
    widget = operator.get("widget", "one")
    assert widget["metadata"]["generation"] == 1
    operator.kubectl("patch", "widget", "one", "--type=merge", "-p", '{"spec":{"colour":"blue"}}')
    assert operator.get("widget", "one")["metadata"]["generation"] == 2
    assert operator.path("{.items[0].kind}", "widgets.v1beta1.example.com") == "Widget"


def test_what_the_schema_forbids_is_refused_in_its_words(operator: Operator) -> None:
    defined(operator)
    wrong = operator.fails("apply", "-f", "-", stdin=WIDGET.replace("red", "pink"))
    assert 'spec.colour: Unsupported value: "pink": supported values: "red", "green", "blue"' in wrong
    many = operator.fails("apply", "-f", "-", stdin=WIDGET.replace("colour: red", "colour: red, replicas: 12"))
    assert "spec.replicas: Invalid value: 12: spec.replicas in body should be less than or equal to 9" in many
    missing = operator.fails("apply", "-f", "-", stdin=WIDGET.replace("colour: red", ""))
    assert "spec.colour: Required value" in missing
    unknown = operator.fails("apply", "-f", "-", stdin=WIDGET.replace("colour: red", "colour: red, shape: round"))
    assert 'unknown field "spec.shape"' in unknown
    twice = operator.fails(
        "create", "-f", "-", stdin=WIDGET.replace("colour: red", "colour: red, parts: [{name: a}, {name: a}]")
    )
    assert 'spec.parts[1]: Duplicate value: {"name":"a"}' in twice


def test_status_and_scale_are_written_by_their_own_doors(operator: Operator) -> None:
    defined(operator)
    operator.apply(WIDGET)
    operator.kubectl("patch", "widget", "one", "--type=merge", "-p", '{"status":{"phase":"Sneaky"}}')
    assert operator.path("{.status}", "widget", "one") == "", "the main door does not touch the status"
    operator.kubectl(
        "patch", "widget", "one", "--type=merge", "--subresource=status", "-p", '{"status":{"replicas":1,"phase":"Up"}}'
    )
    assert operator.path("{.status.phase}", "widget", "one") == "Up"
    assert operator.path("{.metadata.generation}", "widget", "one") == "1"
    operator.kubectl("scale", "widget/one", "--replicas=4")
    assert operator.path("{.spec.replicas}", "widget", "one") == "4"


def test_lists_with_keys_merge_under_server_side_apply(operator: Operator) -> None:
    defined(operator)

    def apply_as(manager: str, parts: str) -> None:
        text = WIDGET.replace("colour: red", f"colour: red, parts: {parts}")
        operator.kubectl("apply", "--server-side", f"--field-manager={manager}", "-f", "-", stdin=text)

    apply_as("alice", "[{name: wheel, size: 3}]")
    apply_as("bob", "[{name: door, size: 1}]")
    parts = json.loads(operator.path("{.spec.parts}", "widget", "one"))
    assert {part["name"] for part in parts} == {"wheel", "door"}
    apply_as("bob", "[]")
    parts = json.loads(operator.path("{.spec.parts}", "widget", "one"))
    assert [part["name"] for part in parts] == ["wheel"]


def test_the_kind_takes_its_objects_with_it(operator: Operator) -> None:
    defined(operator)
    held = WIDGET.replace("name: one", "name: held, finalizers: [example.com/hold]")
    operator.apply(WIDGET, held)
    operator.kubectl("delete", "crd", "widgets.example.com", "--wait=false")
    operator.wait(5)
    waiting = operator.get("crd", "widgets.example.com")
    assert any(c["type"] == "Terminating" and c["status"] == "True" for c in waiting["status"]["conditions"])
    assert operator.kubectl("get", "widgets", "-o", "name").split() == ["widget.example.com/held"]
    operator.kubectl("patch", "widget", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    operator.wait(5)
    assert "NotFound" in operator.fails("get", "crd", "widgets.example.com")
    assert "NotFound" in operator.fails("get", "widgets"), "kubectl still knows the kind; the server does not"


def test_a_broken_definition_says_where(operator: Operator) -> None:
    misnamed = DEFINITION.replace("metadata: {name: widgets.example.com}", "metadata: {name: gadgets.example.com}")
    assert (
        'metadata.name: Invalid value: "gadgets.example.com": must be spec.names.plural+"."+spec.group'
        in operator.fails("apply", "-f", "-", stdin=misnamed)
    )
