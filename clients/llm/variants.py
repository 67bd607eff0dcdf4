"""Variants of the agent, as a table (`variants.toml`): prompts and tools. Prompts are files."""

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
    """Prompts and tools of an agent."""

    name: str
    prompt: str
    tools: tuple[str, ...]
    plan: str = ""
    verify: str = ""


def variant(name: str, tools: str = "", prompt: str = "") -> Variant:
    """Load a variant by name; `tools` selects another set of tools, `prompt` another file."""
    table: dict[str, Any] = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    row = table["variants"].get(name)
    if row is None:
        raise ArenaError(f"there is no variant {name!r}: choose from {', '.join(table['variants'])}")
    tool_set = tools or row["tools"]
    if tool_set not in table["tools"]:
        raise ArenaError(f"there is no set of tools {tool_set!r}: choose from {', '.join(table['tools'])}")
    return Variant(
        name,
        read_prompt(prompt or row["prompt"]),
        tuple(table["tools"][tool_set]),
        read_prompt(row["plan"]) if "plan" in row else "",
        read_prompt(row["verify"]) if "verify" in row else "",
    )


def read_prompt(name: str) -> str:
    """Read a prompt: one of `clients/prompts` by its name, or any file by its path."""
    path = PROMPTS / name if (PROMPTS / name).is_file() else Path(name)
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as problem:
        raise ArenaError(f"the prompt cannot be read: {problem}") from problem
