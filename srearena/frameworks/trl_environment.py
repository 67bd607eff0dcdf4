"""`GrpoEnvironment`: an incident as TRL's `GRPOTrainer` wants its environments; it imports nothing of TRL.

`GRPOTrainer(environment_factory=GrpoEnvironment, train_dataset=rows(...))` makes one object for each rollout, calls
`reset` with the row's columns, offers the public methods as tools and asks `get_reward` once at the end. All rollouts
of one row are forks of one world. Each tool's `Args:` are what TRL shows to the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from srearena.frameworks.incidents import Incident, IncidentPool, framework_spec, select_problems

_PROMPT = "You are an experienced site reliability engineer.\n\n"


def rows(
    suite: str | Sequence[str], seeds: Sequence[int] = (0,), stages: Sequence[str] | None = None, max_steps: int = 30
) -> list[dict[str, Any]]:
    """The rows of a training set: `datasets.Dataset.from_list` takes them."""
    names_of_stages = ",".join(stages or ())
    return [
        {
            "prompt": [{"role": "user", "content": _PROMPT}],
            "problem": problem,
            "seed": seed,
            "stages": names_of_stages,
            "max_steps": max_steps,
        }
        for problem in select_problems(suite)
        for seed in seeds
    ]


@cache
def _pool(stages: str, max_steps: int) -> IncidentPool:
    return IncidentPool(framework_spec(stages.split(",") if stages else None, max_steps))


class GrpoEnvironment:
    """One rollout at a time; `reset` begins the next one."""

    def __init__(self) -> None:
        self._incident: Incident | None = None
        self._reward: float | None = None

    def reset(self, problem: str = "", seed: int = 0, stages: str = "", max_steps: int = 30, **columns: Any) -> str:
        """Start the episode of a row and return the task, which TRL adds to the prompt."""
        if self._incident is not None:
            self._incident.close()
        self._reward = None
        self._incident = _pool(stages, max_steps).open(problem, seed)
        return self._incident.task

    def get_reward(self) -> float:
        """Grade the rollout: the mean of the stages' scores, by the oracles of `srearena run`."""
        if self._reward is None:
            if self._incident is None:
                return 0.0
            self._reward = self._incident.grade("dense", agent="trl").reward
            self._incident.close()
            self._incident = None
        return self._reward

    def kubectl(self, arguments: str) -> str:
        """Run one kubectl command.

        Args:
            arguments: What follows the word kubectl, such as "get pods --all-namespaces".

        Returns:
            What kubectl prints.
        """
        return self._call("kubectl", arguments=arguments)

    def get_alerts(self) -> str:
        """List the alerts that are firing or pending now.

        Returns:
            One alert per line.
        """
        return self._call("get_alerts")

    def get_logs(self, namespace: str, service: str, tail: int = 200) -> str:
        """Show the last lines that the pods of a service, or one pod, have written.

        Args:
            namespace: The namespace.
            service: The name of the service, or of one pod.
            tail: The number of lines.

        Returns:
            The lines.
        """
        return self._call("get_logs", namespace=namespace, service=service, tail=tail)

    def get_metrics(self, query: str, minutes: float = 0) -> str:
        """Ask Prometheus.

        Args:
            query: A query in PromQL.
            minutes: Over the last so many minutes; 0 for now.

        Returns:
            The series and their values.
        """
        return self._call("get_metrics", query=query, minutes=minutes)

    def get_traces(self, service: str = "", minutes: float = 10) -> str:
        """Show recent traces through a service, as trees of calls.

        Args:
            service: The name of the service; empty for the names of those that have traces.
            minutes: Over the last so many minutes.

        Returns:
            The traces.
        """
        return self._call("get_traces", service=service, minutes=minutes)

    def wait(self, seconds: float) -> str:
        """Let time pass in the system.

        Args:
            seconds: Up to 600.

        Returns:
            How long it was.
        """
        return self._call("wait", seconds=seconds)

    def submit_text(self, answer: str) -> str:
        """Answer a question that takes one word, such as Yes or No; empty where a repair is done.

        Args:
            answer: The answer.

        Returns:
            The next question.
        """
        return self._call("submit", solution=answer or None)

    def submit_names(self, names: list[str]) -> str:
        """Answer a question that takes names of components.

        Args:
            names: The names; an empty list says that nothing is at fault.

        Returns:
            The next question.
        """
        return self._call("submit", solution=names)

    def _call(self, name: str, **arguments: Any) -> str:
        if self._incident is None or self._reward is not None:
            return "The episode is over."
        return self._incident.call(name, arguments).state
