"""What the episode itself offers: the question, time, and submissions."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from sre_tools.live.connection import Connection
from sre_tools.live.toolset import LiveTool


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NoArguments(_Arguments):
    pass


class WaitArguments(_Arguments):
    seconds: float = Field(gt=0, le=600)


class SubmitArguments(_Arguments):
    solution: Any = Field(None, description="a text, a list or an object, as the question asks; nothing for a repair")


class EpisodeTools:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def tools(self) -> list[LiveTool]:
        return [
            LiveTool(
                "task",
                "What you are asked now, and about which system. Begin here.",
                NoArguments,
                self.task,
                reads=True,
            ),
            LiveTool("wait", "Let time pass in the system, up to ten minutes.", WaitArguments, self.wait, reads=True),
            LiveTool(
                "submit",
                "Answer the present question, once. What comes back is the next question, or that you are done.",
                SubmitArguments,
                self.submit,
                reads=False,
            ),
        ]

    def task(self, given: NoArguments) -> str:
        status = self._connection.status()
        return f"{self._connection.description.rpartition('Stage ')[0]}{status['question']}"

    def wait(self, given: WaitArguments) -> str:
        return self._connection.act(f"wait({given.seconds!r})")

    def pass_time(self, seconds: float) -> None:
        """For `sleep` in the shell."""
        self._connection.act(f"wait({min(seconds, 600.0)!r})")

    def submit(self, given: SubmitArguments) -> str:
        answer = self._connection.submit(given.solution)
        return "You are done: the episode is over." if answer["finished"] else str(answer["question"])
