"""The instructions of our Dockerfile, by stage."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Instruction:
    stage: str
    keyword: str
    arguments: str


def instructions() -> list[Instruction]:
    """Return the instructions in order; those before the first stage have the stage "", as the default stage has."""
    stage, parsed = "", []
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", "")
    for line in filter(None, text.splitlines()):
        keyword, arguments = line.split(maxsplit=1)
        if keyword == "FROM":
            base, _, stage = arguments.partition(" AS ")
            arguments = base
        parsed.append(Instruction(stage, keyword, arguments))
    return parsed


def arguments_of(stage: str, keyword: str) -> list[str]:
    return [step.arguments for step in instructions() if (step.stage, step.keyword) == (stage, keyword)]
