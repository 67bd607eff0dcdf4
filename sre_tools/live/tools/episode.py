"""task, wait, submit: the question, time, and the answer. more: the next page of a long reply."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from sre_tools.live.context import LiveContext
from sre_tools.registry import NoArguments, ToolArguments, tool


@tool(order=10)
def task(live: LiveContext, arguments: NoArguments) -> str:
    """What you are asked now, and about which system. Begin here."""
    status = live.connection.status()
    return f"{live.connection.description.rpartition('Stage ')[0]}{status['question']}"


class WaitArguments(ToolArguments):
    seconds: float = Field(gt=0, le=600)


@tool(order=20)
def wait(live: LiveContext, arguments: WaitArguments) -> str:
    """Let time pass in the system, up to ten minutes."""
    return live.connection.wait(arguments.seconds)


class SubmitArguments(ToolArguments):
    solution: Any = Field(None, description="a text, a list or an object, as the question asks; nothing for a repair")
    stage: str | int | None = Field(None, description="which question this answers, by name or number; now if omitted")


@tool(order=30, read_only=False)
def submit(live: LiveContext, arguments: SubmitArguments) -> str:
    """Answer the present question, once. What comes back is the next question, or that you are done."""
    answer = live.connection.submit(arguments.solution, arguments.stage)
    return "You are done: the episode is over." if answer["finished"] else str(answer["question"])


class MoreArguments(ToolArguments):
    cursor: str


@tool(order=10_000, bounded=True)
def more(live: LiveContext, arguments: MoreArguments) -> str:
    """The next part of a long answer."""
    return live.pages.more(arguments.cursor)
