"""YAML that others wrote, with bounds on its nesting and on what its aliases stand for.

The loader over libyaml calls itself in C for every level of a document: some ten thousand levels end the process. And
a few lines of aliases stand for more nodes than fit in memory. Both are refused before anything is composed, with an
error of the kind that syntax errors are.
"""

from __future__ import annotations

from typing import Any

import yaml

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEEPEST = 200
"""Levels; what people and programs write has a tenth of it."""
_MOST_NODES = 1_000_000
_NODE_CHARACTERS = 100  # so many characters of a scalar weigh as much as a node


def load_yaml(text: str, loader: Any = Loader) -> Any:
    """The only document of a text; `yaml.YAMLError` for one that is invalid, too deep or too large."""
    check_yaml(text)
    return yaml.load(text, loader)


def check_yaml(text: str) -> None:
    """Raise `yaml.YAMLError` where a text cannot be composed: invalid, nested too deeply, or too large with aliases."""
    sizes: dict[str | None, int] = {}
    opened: list[tuple[str | None, int]] = []
    size = 0
    for event in yaml.parse(text, Loader=Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, size))
            size = 1
            if event.anchor:
                sizes[event.anchor] = _MOST_NODES + 1  # an alias of the collection that it is in has no end
            if len(opened) > DEEPEST:
                raise _refusal(event, f"nested more deeply than {DEEPEST} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, above = opened.pop()
            if anchor:
                sizes[anchor] = size
            size += above
        elif isinstance(event, yaml.ScalarEvent):
            weight = 1 + len(event.value) // _NODE_CHARACTERS
            if event.anchor:
                sizes[event.anchor] = weight
            size += weight
        elif isinstance(event, yaml.AliasEvent):
            size += sizes.get(event.anchor, 1)
        if size > _MOST_NODES:
            raise _refusal(event, f"more than {_MOST_NODES} nodes, those that aliases stand for included")


def _refusal(event: Any, problem: str) -> yaml.YAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
