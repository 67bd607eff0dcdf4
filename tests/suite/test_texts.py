"""No text that an agent can meet names the simulator or another project."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

PACKAGE = Path(__file__).parents[2] / "srearena"
CODE = ("cluster/embedded", "service/products", "service/apps")
"""What runs inside a cluster: programs, tools, servers. The harness outside of it may speak of the simulator."""
FORBIDDEN = re.compile(r"simulat(?:ion|or|ed)\b|sregym|aiopslab", re.IGNORECASE)
OWN_SUBJECT = "fleetcast"
"""An application that simulates satellites, and says so on real clusters, too."""


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the string literals of a module that can be printed: all but docstrings and bare strings."""
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.lineno, node.value


def files(*endings: str) -> list[Path]:
    found = [path for folder in CODE for path in (PACKAGE / folder).rglob("*") if path.suffix in endings]
    return sorted(path for path in found if OWN_SUBJECT not in path.parts)


@pytest.mark.parametrize("folder", CODE)
def test_no_string_of_the_simulated_programs_names_the_simulator(folder: str) -> None:
    named = [
        f"{path.relative_to(PACKAGE)}:{line}: {text[:80]}"
        for path in files(".py")
        if path.is_relative_to(PACKAGE / folder)
        for line, text in texts(ast.parse(path.read_text()))
        if FORBIDDEN.search(text)
    ]
    assert named == []


def leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    else:
        yield str(value)


def test_no_manifest_model_or_image_names_the_simulator() -> None:
    named = [
        f"{path.relative_to(PACKAGE)}: {text[:80]}"
        for path in files(".yaml", ".yml", ".json")
        for document in yaml.load_all(path.read_text(), yaml.CSafeLoader)
        for text in leaves(document)
        if FORBIDDEN.search(text)
    ]
    assert named == []
