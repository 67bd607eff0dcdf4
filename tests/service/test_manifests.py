"""Manifests: read as a whole, in the order of dependence, and refused with file, line and reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.service.errors import ManifestError
from srearena.service.manifests import ORDER, Manifest, images_of, in_order, read_manifests

GOOD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (GOOD + "---\nkind: [\n", 6, "this is not YAML"),
        (GOOD + "---\napiVersion: v1\nmetadata: {name: b}\n", 5, "this object has no kind"),
        (GOOD + "---\nkind: Pod\nmetadata: {name: b}\n", 5, "this object has no apiVersion"),
        ("\n\napiVersion: v1\nkind: Pod\n", 3, "this Pod has no metadata.name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 12}\n", 1, "metadata.name must be text; quote 12"),
        ("- a\n- b\n", 1, "an object is a mapping, this is a list"),
        ("just words\n", 1, "an object is a mapping, this is text"),
        (GOOD + "---\n" + GOOD, 5, "ConfigMap a is defined already, in"),
        (GOOD + "---\na: 1\n\tb: 2\n", 6, "this is not YAML"),
    ],
)
def test_a_mistake_is_named_by_file_and_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    (tmp_path / "deep").mkdir()
    path = tmp_path / "deep" / "things.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError) as caught:
        read_manifests(tmp_path)
    assert str(caught.value).startswith(f"{path}:{line}: ") and message in str(caught.value)


def test_lists_json_and_empty_documents_are_read(tmp_path: Path) -> None:
    items = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n"
    (tmp_path / "a.yaml").write_text("---\n---\n" + items)
    (tmp_path / "b.json").write_text('{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}')
    (tmp_path / "notes.txt").write_text("no: [manifest")
    assert [(m.kind, m.name, m.line) for m in read_manifests(tmp_path)] == [("Secret", "s", 6), ("Service", "web", 1)]


def test_whoever_changes_what_was_read_changes_only_their_own(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    read_manifests(tmp_path)[0].obj["metadata"]["name"] = "changed"
    assert read_manifests(tmp_path)[0].name == "a"


KINDS = st.sampled_from([*ORDER, "Widget", "ValidatingWebhookConfiguration"])


@given(st.lists(KINDS, max_size=30))
def test_what_others_live_in_or_refer_to_comes_first(kinds: list[str]) -> None:
    manifests = [
        Manifest(Path("f"), n, {"apiVersion": "v", "kind": kind, "metadata": {"name": f"{n}"}})
        for n, kind in enumerate(kinds)
    ]
    ordered = in_order(manifests)
    assert sorted(m.line for m in ordered) == list(range(len(kinds)))
    position = {m.line: place for place, m in enumerate(ordered)}
    rank = {kind: number for number, kind in enumerate([*ORDER, "Widget", "ValidatingWebhookConfiguration"])}
    for a in manifests:
        for b in manifests:
            if rank[a.kind] < rank[b.kind] or (a.kind == b.kind and a.line < b.line):
                assert position[a.line] < position[b.line]


def test_images_of_all_workloads() -> None:
    spec = {"initContainers": [{"image": "i"}], "containers": [{"image": "c"}]}
    job = {"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}}
    assert images_of(job) == ["i", "c"]
    assert images_of({"kind": "Pod", "spec": spec}) == ["i", "c"]
    assert images_of({"kind": "Service", "spec": {}}) == []
