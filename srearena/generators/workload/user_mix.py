"""The behaviour of simulated users: weighted tasks with pauses between them, in a closed loop as Locust runs it.

A mix is converted to a locustfile for the real Locust; its comments declare the routes for the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from srearena.generators.workload.mix import Route, write_mix
from srearena.service.errors import ApplicationError


@dataclass(frozen=True, slots=True)
class UserRequest:
    """One HTTP request of a task."""

    path: str
    method: str = "GET"
    json: Any = None
    form: Mapping[str, str] | None = None
    name: str = ""
    """The name under which Locust aggregates requests with different paths."""


@dataclass(frozen=True, slots=True)
class UserTask:
    """A sequence of requests with a relative frequency."""

    name: str
    requests: tuple[UserRequest, ...]
    weight: int = 1


@dataclass(frozen=True, slots=True)
class UserMix:
    """The tasks of a user, and the pause between two tasks."""

    tasks: tuple[UserTask, ...]
    wait: tuple[float, float] = (1.0, 10.0)
    """Minimum and maximum pause between two tasks, in seconds."""

    def __post_init__(self) -> None:
        if not self.tasks or any(task.weight < 1 or not task.requests for task in self.tasks):
            raise ApplicationError("users need tasks, each with a request and a weight of at least 1")
        if not 0 <= self.wait[0] <= self.wait[1]:
            raise ApplicationError(f"users pause between a minimum and a maximum number of seconds, not {self.wait}")

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> UserMix:
        """Parse YAML: `wait: [1, 10]`, and `tasks`, each with name, weight and requests."""
        try:
            tasks = tuple(
                UserTask(
                    task["name"],
                    tuple(UserRequest(**request) for request in task["requests"]),
                    task.get("weight", 1),
                )
                for task in value["tasks"]
            )
            first, last = value.get("wait", (1.0, 10.0))
        except (KeyError, TypeError, ValueError) as problem:
            raise ApplicationError(f"a mix of users has tasks with name, weight and requests: {problem}") from None
        return cls(tasks, (float(first), float(last)))

    def routes(self) -> tuple[Route, ...]:
        return tuple(
            Route(request.method, request.path, float(task.weight), task.name.replace(" ", "-"))
            for task in self.tasks
            for request in task.requests
        )

    def locustfile(self) -> str:
        """Generate the locustfile."""
        lines = [write_mix(self.routes(), "#"), "from locust import FastHttpUser, between, task\n\n"]
        lines.append(f"\nclass Visitor(FastHttpUser):\n    wait_time = between({self.wait[0]:g}, {self.wait[1]:g})\n")
        for number, task in enumerate(self.tasks):
            lines.append(f"\n    @task({task.weight})\n    def task_{number}(self):\n        {task.name!r}\n")
            lines += [f"        {_call(request)}\n" for request in task.requests]
        return "".join(lines)


def _call(request: UserRequest) -> str:
    arguments = [repr(request.path)]
    if request.json is not None:
        arguments.append(f"json={request.json!r}")
    if request.form is not None:
        arguments.append(f"data={dict(request.form)!r}")
    if request.name:
        arguments.append(f"name={request.name!r}")
    return f"self.client.{request.method.lower()}({', '.join(arguments)})"
