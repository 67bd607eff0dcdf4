"""Prompts: a file with YAML front matter, `$VARIABLES` and `{{include: other.md}}`.

Rendering is one pass, so that text which came from a variable is never looked at again. A variable nobody defined, an
include that is missing or goes in circles: an error, before anything starts. `$$` is a dollar sign; a single letter
after a dollar is left alone, since LaTeX writes so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from zero.errors import PromptError

BUILT_IN = Path(__file__).parent / "zero-config" / "prompts"
_INCLUDE = re.compile(r"\{\{\s*include:\s*(?P<file>[^}]+?)\s*\}\}")
_VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<braced>[A-Z][A-Z0-9_]*)\}|(?P<plain>[A-Z][A-Z0-9_]+))")
_FRONT = re.compile(r"\A---[ \t]*\r?\n(?P<yaml>.*?)^---[ \t]*\r?\n?", re.DOTALL | re.MULTILINE)
_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt and what its front matter asks for."""

    text: str
    mcp_servers: tuple[str, ...] | None = None  # None: all there are
    output: str | None = None
    title: str = ""


def find(given: str) -> Path:
    """A prompt by path, or by the name of one of ours."""
    path = Path(given)
    candidates = [path, BUILT_IN / given, BUILT_IN / f"{given}.md"]
    found = next((each for each in candidates if each.is_file()), None)
    if found is None:
        ours = ", ".join(sorted(each.stem for each in BUILT_IN.glob("*.md")))
        raise PromptError(f"no prompt at {given}: give a file, or one of ours: {ours}")
    return found


def _split(path: Path) -> tuple[dict[str, Any], str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise PromptError(f"cannot read the prompt {path}: {problem}") from problem
    match = _FRONT.match(text)
    if match is None:
        return {}, text
    try:
        front = yaml.safe_load(match["yaml"]) or {}
    except yaml.YAMLError as problem:
        raise PromptError(f"the front matter of {path} is no YAML: {str(problem).splitlines()[0]}") from problem
    if not isinstance(front, dict):
        raise PromptError(f"the front matter of {path} is not a mapping")
    return front, text[match.end() :]


def _included(path: Path, above: tuple[Path, ...]) -> str:
    """The body of a file with its includes in place; the front matter of included files is left out."""
    here = path.resolve()
    if here in above:
        raise PromptError(f"includes go in circles: {' → '.join(each.name for each in (*above, here))}")
    if len(above) >= _MAX_DEPTH:
        raise PromptError(f"includes nested deeper than {_MAX_DEPTH}: {path}")

    def replace(match: re.Match[str]) -> str:
        target = path.parent / match["file"]
        if not target.is_file():
            raise PromptError(f"{path} includes {match['file']}, which is not there ({target})")
        return _included(target, (*above, here)).rstrip("\n")

    return _INCLUDE.sub(replace, _split(path)[1])


def flattened(path: Path) -> str:
    """A prompt as one file that needs no other, with its front matter and its variables as they are."""
    front, _ = _split(path)
    head = f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n" if front else ""
    return head + _included(path, ())


def substitute(text: str, variables: Mapping[str, str], where: str) -> str:
    missing: dict[str, None] = {}

    def replace(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "$"
        name = match["braced"] or match["plain"]
        if name not in variables:
            missing[name] = None
            return match[0]
        return variables[name]

    rendered = _VARIABLE.sub(replace, text)
    if missing:
        names = ", ".join(f"${name}" for name in missing)
        known = ", ".join(sorted(variables)) or "none"
        raise PromptError(f"{where} uses {names}: give --variable {next(iter(missing))}=... (defined: {known})")
    return rendered


def _names(front: Mapping[str, Any], path: Path) -> tuple[str, ...] | None:
    value = front.get("mcp_servers")
    if value is None:
        return None
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise PromptError(f"mcp_servers in {path} must be a list of names")
    return tuple(names)


def render(path: Path, variables: Mapping[str, str]) -> Prompt:
    front, _ = _split(path)
    text = substitute(_included(path, ()), variables, str(path))
    output = front.get("output")
    if output is not None and not isinstance(output, str):
        raise PromptError(f"output in {path} must be a word: diagnosis, json or none")
    return Prompt(text.lstrip("\n"), _names(front, path), output, str(front.get("title", "")))
