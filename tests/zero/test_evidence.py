"""Evidence: all of it, read-only, and never the answer key."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero import evidence
from zero.errors import RequestError

NAMES = st.sampled_from(["alerts", "a.json", "logs.tsv", "ground_truth.yaml", "gt.json", "Ground_Truth.yml"])
TREES = st.recursive(
    st.dictionaries(NAMES, st.just(b"x"), max_size=4),
    lambda inner: st.dictionaries(NAMES, inner | st.just(b"x"), max_size=4),
    max_leaves=12,
)


def plant(directory: Path, tree: dict[str, object]) -> None:
    directory.mkdir(parents=True)
    for name, value in tree.items():
        if isinstance(value, dict):
            plant(directory / name, value)
        else:
            (directory / name).write_bytes(b"x")


def is_key(name: str) -> bool:
    return name.lower().startswith(("ground_truth", "gt."))


def expected_files(directory: Path) -> set[Path]:
    """Every file that is neither an answer key nor inside a directory named like one."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {path for path in files if not any(is_key(part) for part in path.relative_to(directory).parts)}


@given(tree=TREES)
def test_allowed_parts_are_everything_but_the_answer_key(tree: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "snapshot"
        plant(root, tree)
        visible: set[Path] = set()
        for piece in evidence.allowed_parts(root):
            assert piece.is_relative_to(root)
            files = {path for path in piece.rglob("*") if path.is_file()} if piece.is_dir() else {piece}
            assert not visible & files, "nothing is mounted twice"
            visible |= files
        assert visible == expected_files(root)


@given(tree=TREES)
def test_copies_have_the_same_files(tree: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as place:
        root, shelf = Path(place) / "snapshot", Path(place) / "shelf"
        plant(root, tree)
        [copied] = evidence.copy([root], shelf)
        found = {path.relative_to(copied.agent_path) for path in copied.agent_path.rglob("*") if path.is_file()}
        assert found == {path.relative_to(root) for path in expected_files(root)}
        assert not any(os.stat(path).st_mode & 0o222 for path in [shelf, *shelf.rglob("*")])
        evidence.remove(shelf)
        assert not shelf.exists()


BACKUPS = ("ground_truth.yaml.bak", ".ground_truth.yaml.swp", "gt.json~", "ground_truth (copy).yaml", "answer-key.txt")


def test_neither_backups_nor_hard_links_of_a_key_are_visible(tmp_path: Path) -> None:
    root = tmp_path / "snapshot"
    plant(root, {"alerts": {"a.json": b"x"}, "ground_truth.yaml": b"x", **dict.fromkeys(BACKUPS, b"x")})
    (root / "alerts" / "b.json").hardlink_to(root / "ground_truth.yaml")
    (tmp_path / "gt.yaml").write_text("beside")
    (root / "notes.txt").hardlink_to(tmp_path / "gt.yaml")
    (root / "gtfs.json").write_text("a time table")
    (root / "same.json").hardlink_to(root / "gtfs.json")
    visible = {"a.json", "gtfs.json", "same.json"}
    assert {piece.name for piece in evidence.allowed_parts(root)} == visible
    [copied] = evidence.copy([root], tmp_path / "shelf")
    files = [path for path in copied.agent_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} == visible
    assert all(path.stat().st_nlink == 1 for path in files), "a copy is no link"
    evidence.remove(tmp_path / "shelf")


def test_links_lead_neither_out_nor_to_the_key(tmp_path: Path) -> None:
    root = tmp_path / "snapshot"
    plant(root, {"alerts": {"a.json": b"x"}, "ground_truth.yaml": b"x", "logs.tsv": b"x"})
    (tmp_path / "secret.txt").write_text("s")
    (root / "out").symlink_to(tmp_path / "secret.txt")
    (root / "innocent.yaml").symlink_to(root / "ground_truth.yaml")
    (root / "again").symlink_to(root)
    (root / "fine").symlink_to(root / "logs.tsv")
    assert {piece.name for piece in evidence.allowed_parts(root)} == {"alerts", "logs.tsv", "fine"}
    [copied] = evidence.copy([root], tmp_path / "shelf")
    assert {path.name for path in copied.agent_path.iterdir()} == {"alerts", "logs.tsv", "fine"}


def test_paths_in_variables_are_replaced_by_the_copies(tmp_path: Path) -> None:
    root = tmp_path / "Scenario-1"
    longer = tmp_path / "Scenario-10"
    plant(root, {"a.json": b"x"})
    plant(longer, {"a.json": b"x"})
    copies = evidence.copy([root, longer], tmp_path / "shelf")
    assert evidence.replace_paths(f"{root},{longer}", copies) == f"{copies[0].agent_path},{copies[1].agent_path}"
    assert evidence.replace_paths(os.path.relpath(root), copies) == str(copies[0].agent_path)
    assert evidence.replace_paths("something else", copies) == "something else"


def test_a_workspace_inside_the_evidence_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="lies inside"):
        evidence.resolve([tmp_path], tmp_path / "work")
    with pytest.raises(RequestError, match="no directory"):
        evidence.resolve([tmp_path / "missing"], tmp_path / "work")
