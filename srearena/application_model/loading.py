"""Reading a model: YAML to checked data, with `extends` resolved, and a message that names file, path and reason."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from srearena.application_model.schema import ApplicationModel
from srearena.errors import SreArenaError

_MERGED = ("settings", "dependencies", "operations", "files", "env", "reports")
"""Keys whose entries a program that extends another adds to, rather than replaces."""


class ModelError(SreArenaError):
    """A model cannot be used; the message names the file, the place in it, and what is wrong there."""


def load_model(path: Path) -> ApplicationModel:
    """The model in a file, or in the `model.yaml` of a folder."""
    path = Path(path)
    if path.is_dir():
        path /= "model.yaml"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise ModelError(f"{path}: cannot be read: {problem.strerror}") from None
    except UnicodeError:
        raise ModelError(f"{path}: is not UTF-8 text") from None
    return _parsed(path, text)


@lru_cache(maxsize=32)
def _parsed(path: Path, text: str) -> ApplicationModel:
    try:
        loaded = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise ModelError(f"{path}{where}: {getattr(problem, 'problem', None) or problem}") from None
    if not isinstance(loaded, dict) or not isinstance(loaded.get("programs"), list):
        raise ModelError(f"{path}: a model is a mapping with `application` and a list of `programs`")
    loaded["programs"] = _extended(path, loaded["programs"])
    loaded.pop("templates", None)
    try:
        return ApplicationModel.model_validate(loaded)
    except ValidationError as problem:
        raise ModelError(_first_error(path, loaded, problem)) from None


def _extended(path: Path, programs: list[Any]) -> list[Any]:
    """Programs with what they take over from others of the same file; those marked `abstract` only give."""
    known: dict[str, dict[str, Any]] = {}
    result: list[Any] = []
    for number, program in enumerate(programs):
        if not isinstance(program, dict):
            raise ModelError(f"{path}: programs[{number}] must be a mapping")
        own = dict(program)
        parent_name = own.pop("extends", None)
        if parent_name is not None:
            parent = known.get(parent_name)
            if parent is None:
                raise ModelError(
                    f"{path}: programs[{number}].extends: no program {parent_name!r} comes before this one"
                )
            own = _merged(parent, own)
        abstract = own.pop("abstract", False)
        known[str(own.get("name", number))] = own
        if not abstract:
            result.append(own)
    return result


def _merged(parent: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    merged = {**parent, **own}
    for key in _MERGED:
        if isinstance(parent.get(key), dict) and isinstance(own.get(key), dict):
            merged[key] = {**parent[key], **own[key]}
    for key in ("effects",):
        if isinstance(parent.get(key), list) and isinstance(own.get(key), list):
            merged[key] = [*parent[key], *own[key]]
    return merged


def _first_error(path: Path, loaded: dict[str, Any], problem: ValidationError) -> str:
    errors = problem.errors(include_url=False)
    first = errors[0]
    place = ""
    node: Any = loaded
    for part in first["loc"]:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
        if isinstance(part, int) and isinstance(node, list) and part < len(node):
            node = node[part]
            if place.startswith("programs[") and place.count("[") == 1 and isinstance(node, dict) and "name" in node:
                place = f"programs[{node['name']}]"
        elif isinstance(node, dict):
            node = node.get(part)
    reason = str(first["msg"]).removeprefix("Value error, ")
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{path}: {place}: {reason}{more}"
