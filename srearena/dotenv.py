"""`.env` files: environment variables of a project, such as API keys. Variables of the process take precedence.

The file is that of the working directory, or of the nearest parent directory within the same project.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from srearena.errors import SreArenaError

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$")
_PROJECT_MARKERS = (".git", "pyproject.toml")
_REFERENCE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def read_dotenv(text: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Parse the assignments of a `.env` file; `$NAME` refers to earlier lines, then to the environment."""
    variables: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or line.lstrip().startswith("#"):
            continue
        name, value = match[1], match[2]
        if len(value) >= 2 and value[0] == value[-1] == "'":
            variables[name] = value[1:-1]
            continue
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1]
        else:
            value = value.split(" #", 1)[0].rstrip()
        variables[name] = _REFERENCE.sub(
            lambda ref: variables.get(ref[1] or ref[2], environment.get(ref[1] or ref[2], "")), value
        )
    return variables


def environment(directory: Path | None = None) -> dict[str, str]:
    """The environment of the process, extended by the `.env` file of the working directory or its project."""
    present = dict(os.environ)
    file = _nearest(directory or Path.cwd())
    if file is None:
        return present
    try:
        return {**read_dotenv(file.read_text(encoding="utf-8"), present), **present}
    except (OSError, UnicodeDecodeError) as problem:
        raise SreArenaError(f"cannot read {file}: {problem}") from problem


def _nearest(directory: Path) -> Path | None:
    folders = (directory, *directory.parents)
    root = next(
        (at for at, folder in enumerate(folders) if any((folder / name).exists() for name in _PROJECT_MARKERS)), 0
    )
    return next((folder / ".env" for folder in folders[: root + 1] if (folder / ".env").is_file()), None)
