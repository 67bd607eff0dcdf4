"""Read-only directories for the agent, without answer keys.

In a sandbox they are mounted at their own path, read-only, in parts that exclude every answer key and every link out of
them; a hard link to a key is a key. Without a sandbox they are copied to the workspace, never linked, without write
permission, and paths in variables are replaced by those of the copies.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from srearena.errors import InputError
from srearena.ground_truth.files import hard_links_of_ground_truth, may_hold_ground_truth
from zero.errors import RequestError

_MAX_DEPTH = 32  # directories; chosen: bounds the recursion


@dataclass(frozen=True, slots=True)
class Evidence:
    """One directory: its path, and its path for the agent."""

    source: Path
    agent_path: Path


def _completed(path: Path) -> Path:
    if not any(part.endswith("...") for part in path.parts):
        return path
    from srearena.snapshots.examples import complete_directory  # its package takes a while to import

    try:
        return complete_directory(path)
    except InputError as problem:
        raise RequestError(f"--read-only-dir: {problem}") from problem


def resolve(paths: Sequence[Path], workspace: Path) -> list[Path]:
    """The resolved directories without duplicates; RequestError if one cannot be used."""
    directories: list[Path] = []
    for path in paths:
        directory = _completed(path.expanduser()).resolve()
        if not directory.is_dir():
            raise RequestError(
                f"no directory at {path}: --read-only-dir takes a directory (`srearena snapshot examples` makes some)"
            )
        if workspace.is_relative_to(directory):
            raise RequestError(
                f"the workspace {workspace} lies inside the read-only directory {directory}: choose another one"
            )
        if directory not in directories:
            directories.append(directory)
    return directories


class Root:
    """A directory of evidence, and which of its files no agent may read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._keys = hard_links_of_ground_truth(path)

    def forbids(self, path: Path) -> bool:
        """Whether a path is an answer key under any name, a link out of the directory, or a device."""
        if may_hold_ground_truth(path):
            return True
        if path.is_symlink():
            target = path.resolve()
            # A link to a directory would give access to the excluded parts.
            outside = not target.is_relative_to(self.path) or not target.is_file()
            return outside or may_hold_ground_truth(target) or self._is_key(target)
        if path.is_dir():
            return False
        return not path.is_file() or self._is_key(path)  # sockets, devices

    def _is_key(self, path: Path) -> bool:
        state = path.stat()
        return (state.st_dev, state.st_ino) in self._keys


def allowed_parts(directory: Path, root: Root | None = None, depth: int = 0) -> Iterator[Path]:
    """The largest parts of a directory without forbidden files; together they are everything else."""
    root = root or Root(directory)
    if depth > _MAX_DEPTH:
        return
    children = sorted(directory.iterdir())
    allowed = [child for child in children if not root.forbids(child)]
    parts_of = {
        child: [*allowed_parts(child, root, depth + 1)]
        for child in allowed
        if child.is_dir() and not child.is_symlink()
    }
    complete = all(parts == [child] for child, parts in parts_of.items())
    if len(allowed) == len(children) and complete and children:
        yield directory
        return
    for child in allowed:
        yield from parts_of.get(child, [child])


def remove(directory: Path) -> None:
    """Delete a file, link or directory, also without write permission; links are not followed."""
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        directory.unlink()
    elif directory.exists():
        for folder, _, _ in os.walk(directory):
            Path(folder).chmod(0o700)
        shutil.rmtree(directory)


def copy(sources: Sequence[Path], target: Path) -> list[Evidence]:
    """Copy directories to `target`, which is emptied first: no links, no answer keys, no write permission."""
    remove(target)
    copies = []
    names: set[str] = set()
    for source in sources:
        name = source.name or "root"
        while name in names:
            name += "_"
        names.add(name)
        _copy(source, target / name, Root(source), 0)
        copies.append(Evidence(source, target / name))
    if copies:
        target.chmod(0o555)
    return copies


def _copy(source: Path, target: Path, root: Root, depth: int) -> None:
    target.mkdir(parents=True)
    for child in sorted(source.iterdir()):
        if root.forbids(child) or depth > _MAX_DEPTH:
            continue
        if child.is_dir() and not child.is_symlink():
            _copy(child, target / child.name, root, depth + 1)
        elif child.is_file():
            shutil.copyfile(child, target / child.name)
            (target / child.name).chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    target.chmod(0o555)


def replace_paths(value: str, evidence: Sequence[Evidence]) -> str:
    """Replace paths of directories in a variable's value by the paths for the agent."""
    for each in sorted(evidence, key=lambda one: len(str(one.source)), reverse=True):
        if value and len(value) < 4096 and "\0" not in value and Path(value).resolve() == each.source:
            return str(each.agent_path)
        if each.source != each.agent_path:
            value = value.replace(str(each.source), str(each.agent_path))
    return value
