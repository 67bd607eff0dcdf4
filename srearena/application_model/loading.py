"""Reading a model: YAML is validated, `extends` resolved; an error names file, path and reason."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from srearena.application_model.schema import ApplicationModel
from srearena.errors import SreArenaError, one_line

_MERGED = ("settings", "dependencies", "operations", "files", "env")
"""Keys whose entries are merged when a program extends another; other keys are replaced."""


class ModelError(SreArenaError):
    """A model is invalid; the message names the file, the path in it, and the reason."""


def load_model(path: Path) -> ApplicationModel:
    """Read the model in a file, or in the `model.yaml` of a folder."""
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
        raise ModelError(f"{path}, {one_line(problem)}") from None
    if not isinstance(loaded, dict) or not isinstance(loaded.get("programs"), list):
        raise ModelError(f"{path}: a model is a mapping with `application` and a list of `programs`")
    loaded["programs"] = _extended(path, loaded["programs"])
    loaded.pop("templates", None)
    try:
        return ApplicationModel.model_validate(loaded)
    except ValidationError as problem:
        raise ModelError(_first_error(path, loaded, problem)) from None


def _extended(path: Path, programs: list[Any]) -> list[Any]:
    """Resolve `extends`; programs marked `abstract` serve only as a base and are dropped."""
    by_name: dict[str, dict[str, Any]] = {}
    result: list[Any] = []
    for number, program in enumerate(programs):
        if not isinstance(program, dict):
            raise ModelError(f"{path}: programs[{number}] must be a mapping")
        values = dict(program)
        parent_name = values.pop("extends", None)
        if parent_name is not None:
            parent = by_name.get(parent_name)
            if parent is None:
                raise ModelError(
                    f"{path}: programs[{number}].extends: no program {parent_name!r} comes before this one"
                )
            values = _merged(parent, values)
        abstract = values.pop("abstract", False)
        by_name[str(values.get("name", number))] = values
        if not abstract:
            result.append(values)
    return result


def _merged(parent: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    merged = {**parent, **child}
    for key in _MERGED:
        if isinstance(parent.get(key), dict) and isinstance(child.get(key), dict):
            merged[key] = {**parent[key], **child[key]}
    for key in ("effects",):
        if isinstance(parent.get(key), list) and isinstance(child.get(key), list):
            merged[key] = [*parent[key], *child[key]]
    return merged


def _first_error(path: Path, loaded: dict[str, Any], problem: ValidationError) -> str:
    errors = problem.errors(include_url=False)
    first = errors[0]
    location = ""
    node: Any = loaded
    for part in first["loc"]:
        location += f"[{part}]" if isinstance(part, int) else f".{part}" if location else str(part)
        if isinstance(part, int) and isinstance(node, list) and part < len(node):
            node = node[part]
            if (
                location.startswith("programs[")
                and location.count("[") == 1
                and isinstance(node, dict)
                and "name" in node
            ):
                location = f"programs[{node['name']}]"
        elif isinstance(node, dict):
            node = node.get(part)
    reason = str(first["msg"]).removeprefix("Value error, ")
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{path}: {location}: {reason}{more}"
