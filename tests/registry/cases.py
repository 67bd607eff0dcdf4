"""What the tests of the registry share: recorded cases, arbitrary JSON, and objects to begin with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
from hypothesis import strategies as st

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import schemas
from srearena.cluster.embedded.registry.schema import Schema

RECORDED = Path(__file__).parent / "recorded"
KINDS = {
    "Pod": ("", "v1"),
    "Service": ("", "v1"),
    "ConfigMap": ("", "v1"),
    "Node": ("", "v1"),
    "Deployment": ("apps", "v1"),
}


def recorded(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((RECORDED / f"{name}.json").read_text())
    return cases


def schema_of(kind: str) -> Schema:
    found = schemas.for_kind(*KINDS[kind], kind)
    assert found is not None
    return found


def api_version_of(kind: str) -> str:
    return "/".join(filter(None, KINDS[kind]))


def copy(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def deployment(**spec: Any) -> Obj:
    container = {"name": "web", "image": "nginx:1", "ports": [{"containerPort": 80}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
keys = st.sampled_from(["a", "b", "metadata", "name", "spec", "labels", "containers", "$patch", "f:x", ""]) | st.text(
    st.characters(exclude_categories=("Cs",)), max_size=4
)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=6) | st.sampled_from(["delete", "replace", "1Gi"])
json_values = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)
json_objects = st.dictionaries(keys, json_values, max_size=5)
