"""Kinds of the agent, as a table (`variants.toml`): which prompts, which tools. Prompts are files."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srearena.conductor.errors import ArenaError

PROMPTS = Path(__file__).parents[1] / "prompts"
_TABLE = Path(__file__).parent / "variants.toml"


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    prompt: str
    tools: tuple[str, ...]
    plan: str = ""
    verify: str = ""


def variant(name: str, tools: str = "", prompt: str = "") -> Variant:
    """A variant by name; `tools` names another set of tools, `prompt` another file."""
    table: dict[str, Any] = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    chosen = table["variants"].get(name)
    if chosen is None:
        raise ArenaError(f"there is no variant {name!r}: choose from {', '.join(table['variants'])}")
    wanted = tools or chosen["tools"]
    if wanted not in table["tools"]:
        raise ArenaError(f"there is no set of tools {wanted!r}: choose from {', '.join(table['tools'])}")
    return Variant(
        name,
        read_prompt(prompt or chosen["prompt"]),
        tuple(table["tools"][wanted]),
        read_prompt(chosen["plan"]) if "plan" in chosen else "",
        read_prompt(chosen["verify"]) if "verify" in chosen else "",
    )


def read_prompt(name: str) -> str:
    """A prompt of ours by its file's name, or any file by its path."""
    path = PROMPTS / name if (PROMPTS / name).is_file() else Path(name)
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as problem:
        raise ArenaError(f"the prompt cannot be read: {problem}") from problem
