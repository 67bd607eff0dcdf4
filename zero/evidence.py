"""Directories that the agent may read and not change, without the answer key.

In a sandbox they are mounted where they are, read-only, piece by piece around every answer key and every link that
leads out: what is not mounted does not exist there. Without a sandbox they are copied into the workspace, with the
write permission taken away, and paths in variables are led to the copy.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from srearena.ground_truth.files import is_ground_truth_file
from zero.errors import RequestError

_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Evidence:
    """One directory: where it really is, and where the agent finds it."""

    source: Path
    seen_at: Path


def resolve(given: Sequence[Path], workspace: Path) -> list[Path]:
    found: list[Path] = []
    for path in given:
        place = path.expanduser().resolve()
        if not place.is_dir():
            raise RequestError(f"no directory at {path}: --read-only-dir takes a directory")
        if workspace.is_relative_to(place):
            raise RequestError(
                f"the workspace {workspace} lies inside the read-only directory {place}: put it elsewhere"
            )
        if place not in found:
            found.append(place)
    return found


def forbidden(path: Path, root: Path) -> bool:
    """Whether something below `root` is not for agents: an answer key, a link that leads out, a device."""
    if is_ground_truth_file(path):
        return True
    if path.is_symlink():
        target = path.resolve()
        # A link to a directory would be a second way in, past the pieces left out.
        return not target.is_relative_to(root) or is_ground_truth_file(target) or not target.is_file()
    return not (path.is_file() or path.is_dir())  # sockets, devices


def pieces(directory: Path, root: Path | None = None, depth: int = 0) -> Iterator[Path]:
    """The largest parts of a directory that hold nothing forbidden; together they are all but the forbidden."""
    root = root or directory
    if depth > _MAX_DEPTH:
        return
    children = sorted(directory.iterdir())
    split = [child for child in children if not forbidden(child, root)]
    below = {child: [*pieces(child, root, depth + 1)] for child in split if child.is_dir() and not child.is_symlink()}
    whole = all(parts == [child] for child, parts in below.items())
    if len(split) == len(children) and whole and children:
        yield directory
        return
    for child in split:
        yield from below.get(child, [child])


def remove(directory: Path) -> None:
    """Delete whatever is there, links as links; also a copy whose write permission was taken away."""
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        directory.unlink()
    elif directory.exists():
        for folder, _, _ in os.walk(directory):
            Path(folder).chmod(0o700)
        shutil.rmtree(directory)


def copy(sources: Sequence[Path], shelf: Path) -> list[Evidence]:
    """Copies of directories under `shelf`, which is emptied first; no links, no answer keys, nothing writable."""
    remove(shelf)
    copies = []
    names: set[str] = set()
    for source in sources:
        name = source.name or "root"
        while name in names:
            name += "_"
        names.add(name)
        target = shelf / name
        _copy(source, target, source, 0)
        copies.append(Evidence(source, target))
    if copies:
        shelf.chmod(0o555)
    return copies


def _copy(source: Path, target: Path, root: Path, depth: int) -> None:
    target.mkdir(parents=True)
    for child in sorted(source.iterdir()):
        if forbidden(child, root) or depth > _MAX_DEPTH:
            continue
        if child.is_dir() and not child.is_symlink():
            _copy(child, target / child.name, root, depth + 1)
        elif child.is_file():
            shutil.copyfile(child, target / child.name)
            (target / child.name).chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    target.chmod(0o555)


def lead(value: str, evidence: Sequence[Evidence]) -> str:
    """A variable's value with the paths of the originals replaced by those of the copies."""
    for each in sorted(evidence, key=lambda one: len(str(one.source)), reverse=True):
        if value and len(value) < 4096 and "\0" not in value and Path(value).resolve() == each.source:
            return str(each.seen_at)
        if each.source != each.seen_at:
            value = value.replace(str(each.source), str(each.seen_at))
    return value
