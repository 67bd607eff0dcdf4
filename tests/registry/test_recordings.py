"""Everything recorded from the Go libraries comes out the same here, to the letter."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import schemas, structural
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.field_selectors import parse_field_selector
from srearena.cluster.embedded.registry.field_validation import DecodeError, Directive, decode, decode_patched
from srearena.cluster.embedded.registry.json_reader import JsonSyntaxError, read_json
from srearena.cluster.embedded.registry.patch.apply import server_side_apply
from srearena.cluster.embedded.registry.patch.json_patch import PatchRejected, apply_json_patch
from srearena.cluster.embedded.registry.patch.managed_fields import update_managed_fields
from srearena.cluster.embedded.registry.patch.merge_patch import apply_merge_patch
from srearena.cluster.embedded.registry.patch.strategic import apply_strategic_patch
from srearena.cluster.embedded.registry.selectors import parse_label_selector
from srearena.cluster.embedded.registry.structural_validation import validation_errors
from tests.registry.cases import api_version_of, recorded, schema_of, without_nulls

Case = dict[str, Any]


def _numbered(name: str) -> list[Any]:
    return [pytest.param(case, id=f"{name}-{number}") for number, case in enumerate(recorded(name))]


def _same_json(one: Any, other: Any) -> bool:
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)


@pytest.mark.parametrize("case", _numbered("label_selectors"))
def test_label_selectors_parse_or_fail_alike(case: Case) -> None:
    if "ok" in case:
        assert str(parse_label_selector(case["text"])) == case["ok"]
    else:
        with pytest.raises(ApiError) as refusal:
            parse_label_selector(case["text"])
        assert refusal.value.message == case["error"]


@pytest.mark.parametrize("case", _numbered("field_selectors"))
def test_field_selectors_parse_or_fail_alike(case: Case) -> None:
    if "ok" in case:
        assert str(parse_field_selector(case["text"])) == case["ok"]
    else:
        with pytest.raises(ApiError) as refusal:
            parse_field_selector(case["text"])
        assert refusal.value.message == case["error"]


@pytest.mark.parametrize("case", _numbered("json_patches"))
def test_json_patches_apply_or_fail_alike(case: Case) -> None:
    if "ok" in case:
        assert _same_json(apply_json_patch(case["doc"], case["patch"]), case["ok"])
    else:
        with pytest.raises(PatchRejected) as refusal:
            apply_json_patch(case["doc"], case["patch"])
        assert refusal.value.why == case["error"]


@pytest.mark.parametrize("case", _numbered("merge_patches"))
def test_merge_patches_give_the_same(case: Case) -> None:
    assert _same_json(apply_merge_patch(case["doc"], case["patch"]), case["ok"])


@pytest.mark.parametrize("case", _numbered("strategic_patches"))
def test_strategic_patches_give_the_same_lists_in_the_same_order(case: Case) -> None:
    if "ok" in case:
        assert _same_json(apply_strategic_patch(case["doc"], case["patch"], schema_of(case["kind"])), case["ok"])
    else:
        # Which of several complaints comes first depends on the order of Go's maps.
        with pytest.raises(ApiError):
            apply_strategic_patch(case["doc"], case["patch"], schema_of(case["kind"]))


@pytest.mark.parametrize("case", _numbered("json_syntax"))
def test_what_is_no_json_is_told_in_the_same_words(case: Case) -> None:
    with pytest.raises(JsonSyntaxError) as problem:
        read_json(case["text"].encode())
    assert str(problem.value) == case["error"]


@pytest.mark.parametrize("case", [c for c in _numbered("decoding") if c.values[0]["how"] == "json"])
def test_decoding_text_prunes_and_complains_alike(case: Case) -> None:
    if "error" in case:
        with pytest.raises(DecodeError) as problem:
            decode(case["doc"], schema_of(case["kind"]))
        assert str(problem.value) == case["error"]
    else:
        decoded = decode(case["doc"], schema_of(case["kind"]))
        assert decoded.strict == case["strict"]
        assert _same_json(without_nulls(decoded.obj), case["ok"])


@pytest.mark.parametrize("case", [c for c in _numbered("decoding") if c.values[0]["how"] == "memory"])
def test_decoding_from_memory_prunes_and_complains_alike(case: Case) -> None:
    def patched() -> tuple[Obj, list[str]]:
        schema = schema_of(case["kind"])
        return decode_patched(case["doc"], schema, patch={}, strategic=True, directive=Directive.WARN)

    if "error" in case:
        with pytest.raises(ApiError) as refusal:
            patched()
        assert refusal.value.message == f' "" is invalid: patch: Invalid value: "map[]": {case["error"]}'
    else:
        obj, warnings = patched()
        assert warnings == case.get("strict", [])
        if "ok" in case:
            assert _same_json(without_nulls(obj), case["ok"])


@pytest.mark.parametrize("history", _numbered("histories"))
def test_ownership_takes_the_same_course(history: Case) -> None:
    kind, live = history["kind"], None
    schema, api_version = schema_of(kind), api_version_of(kind)
    for number, step in enumerate(history["steps"]):
        common: Any = {
            "manager": step["manager"],
            "api_version": api_version,
            "time": f"2024-01-01T00:00:0{number}Z",
            "schema": schema,
            "subresource": step.get("subresource", ""),
        }
        if "error" in step:
            with pytest.raises(ApiError) as refusal:
                server_side_apply(live, step["apply"], force=step["force"], kind=kind, **common)
            assert refusal.value.message == step["error"]
            causes = [(cause["message"], cause["field"]) for cause in step["causes"]]
            assert [(cause["message"], cause["field"]) for cause in refusal.value.causes] == causes
            continue
        if "apply" in step:
            applied = server_side_apply(live, step["apply"], force=step["force"], kind=kind, **common)
            new = decode(applied, schema).obj
        else:
            new = decode(step["update"], schema).obj
            new["metadata"]["managedFields"] = update_managed_fields(live, new, **common)
        live = new
        entries = [{k: v for k, v in e.items() if k != "time"} for e in new["metadata"].get("managedFields", [])]
        order = sorted(entries, key=lambda e: (e["operation"], e["manager"], e.get("subresource", "")))
        # Byte for byte, so that the order within a set is right, too.
        assert [orjson.dumps(e["fieldsV1"]) for e in order] == [
            orjson.dumps(e["fieldsV1"]) for e in step["managedFields"]
        ]
        assert order == step["managedFields"]
        bare = {**new, "metadata": {k: v for k, v in new["metadata"].items() if k != "managedFields"}}
        assert _same_json(without_nulls(bare), step["object"])
        live["metadata"]["uid"] = "u"


@pytest.mark.parametrize("case", _numbered("custom_resources"))
def test_custom_resources_are_pruned_defaulted_and_judged_alike(case: Case) -> None:
    schema = schemas.for_custom(case["schema"])
    obj, warnings = structural.decode_custom(case["given"], schema, kind="Foo", version="v1")
    assert warnings == [f'unknown field "{path}"' for path in sorted(case["unknown"])]
    structural.apply_defaults(obj, case["schema"])
    assert _same_json(obj, case["object"])
    assert sorted(map(str, validation_errors(obj, schema))) == case["errors"]
