"""Helpers for actions that agents can perform.

A method with `@action` is an action. Its signature and its docstring are what the agent learns about it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., str])
LONGEST_ANSWER = 20_000
"""Characters; about 5,000 tokens, so that one answer does not fill a model's context."""
_MARK = "is_action"


def action(method: F) -> F:
    """Mark a method as an action of agents."""
    setattr(method, _MARK, True)
    return method


def actions_of(owner: type[Any]) -> dict[str, Callable[..., str]]:
    """The actions of a class by name, in the order in which it defines them."""
    return {name: member for name, member in vars(owner).items() if getattr(member, _MARK, False)}


def describe(function: Callable[..., str]) -> str:
    """The signature and the docstring of an action, for the agent."""
    signature = str(inspect.signature(function)).replace("self, ", "").replace("(self)", "()")
    return f"{function.__name__}{signature.partition(' ->')[0]}\n{inspect.getdoc(function)}"


def bounded(text: str, limit: int = LONGEST_ANSWER) -> str:
    """The beginning and the end of a long text, with a note on what is omitted."""
    if len(text) <= limit:
        return text
    half = limit // 2
    left_out = len(text) - 2 * half
    note = f"\n... {left_out} characters left out: narrow it with a selector, --tail, -o, grep or head ...\n"
    return text[:half] + note + text[-half:]
