"""`.env`: what people set once for a project, keys above all. What is set in the environment already stays.

It is the one of the working directory, or of the nearest directory above it within the same project.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from srearena.errors import SreArenaError

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$")
_ROOT_HAS = (".git", "pyproject.toml")
_REFERENCE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def read_dotenv(text: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The assignments of a `.env` file; `$NAME` refers to earlier lines, then to the environment."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or line.lstrip().startswith("#"):
            continue
        name, value = match[1], match[2]
        if len(value) >= 2 and value[0] == value[-1] == "'":
            found[name] = value[1:-1]
            continue
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1]
        else:
            value = value.split(" #", 1)[0].rstrip()
        found[name] = _REFERENCE.sub(
            lambda ref: found.get(ref[1] or ref[2], environment.get(ref[1] or ref[2], "")), value
        )
    return found


def environment(directory: Path | None = None) -> dict[str, str]:
    """The process's environment, completed by `.env` of the working directory or of the project it is in."""
    present = dict(os.environ)
    file = _nearest(directory or Path.cwd())
    if file is None:
        return present
    try:
        return {**read_dotenv(file.read_text(encoding="utf-8"), present), **present}
    except (OSError, UnicodeDecodeError) as problem:
        raise SreArenaError(f"cannot read {file}: {problem}") from problem


def _nearest(directory: Path) -> Path | None:
    places = (directory, *directory.parents)
    root = next((at for at, place in enumerate(places) if any((place / name).exists() for name in _ROOT_HAS)), 0)
    return next((place / ".env" for place in places[: root + 1] if (place / ".env").is_file()), None)
