"""Prompts: a file with YAML front matter, `$VARIABLES` and `{{include: other.md}}`.

Rendering is one pass, so that values of variables are never expanded again. Undefined variables and missing or circular
includes are errors. `$$` is a dollar sign; a dollar and a single letter are left unchanged, as in LaTeX.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from srearena.errors import one_line
from zero.errors import PromptError

BUILT_IN = Path(__file__).parent / "zero-config" / "prompts"
_INCLUDE = re.compile(r"\{\{\s*include:\s*(?P<file>[^}]+?)\s*\}\}")
_VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<braced>[A-Z][A-Z0-9_]*)\}|(?P<plain>[A-Z][A-Z0-9_]+))")
_FRONT = re.compile(r"\A---[ \t]*\r?\n(?P<yaml>.*?)^---[ \t]*\r?\n?", re.DOTALL | re.MULTILINE)
_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt and the settings of its front matter."""

    text: str
    mcp_servers: tuple[str, ...] | None = None  # None: all servers
    output: str | None = None
    title: str = ""


def find(name: str) -> Path:
    """A prompt by path, or by the name of a built-in one."""
    candidates = [Path(name), BUILT_IN / name, BUILT_IN / f"{name}.md"]
    path = next((each for each in candidates if each.is_file()), None)
    if path is None:
        built_in = ", ".join(sorted(each.stem for each in BUILT_IN.glob("*.md")))
        raise PromptError(f"no prompt at {name}: give a file, or a built-in one: {built_in}")
    return path


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
        raise PromptError(f"the front matter of {path} is not YAML: {one_line(problem)}") from problem
    if not isinstance(front, dict):
        raise PromptError(f"the front matter of {path} is not a mapping")
    return front, text[match.end() :]


def _included(path: Path, parents: tuple[Path, ...]) -> str:
    """The body of a file with its includes substituted, without their front matter."""
    resolved = path.resolve()
    if resolved in parents:
        raise PromptError(f"circular includes: {' → '.join(each.name for each in (*parents, resolved))}")
    if len(parents) >= _MAX_DEPTH:
        raise PromptError(f"includes nested deeper than {_MAX_DEPTH}: {path}")

    def replace(match: re.Match[str]) -> str:
        target = path.parent / match["file"]
        if not target.is_file():
            raise PromptError(f"{path} includes {match['file']}, which does not exist ({target})")
        return _included(target, (*parents, resolved)).rstrip("\n")

    return _INCLUDE.sub(replace, _split(path)[1])


def flattened(path: Path) -> str:
    """A prompt with its includes substituted, and with its front matter and variables unchanged."""
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
        defined = ", ".join(sorted(variables)) or "none"
        raise PromptError(f"{where} uses {names}: give --variable {next(iter(missing))}=... (defined: {defined})")
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
