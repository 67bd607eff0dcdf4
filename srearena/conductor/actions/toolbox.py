"""The actions of an agent. Their docstrings are shown to the agent; everything runs with the agent's own identity.

Every answer is bounded; a truncated answer says how to see more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from srearena.cluster import Cluster
from srearena.conductor.actions import command_line, kubectl_policy
from srearena.conductor.actions.analysis import Analysis
from srearena.conductor.actions.kubectl_process import KubectlProcess
from srearena.conductor.actions.parsing import Call
from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.actions.time_limit import TimeLimit
from srearena.conductor.errors import BadAction
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes
from srearena.service.telemetry import PodLogs
from srearena.utils.actions import action, actions_of, bounded, describe

_LONGEST_WAIT = 600.0
_WAIT_PART = 30.0


class Toolbox:
    """The actions on one cluster."""

    def __init__(self, cluster: Cluster, kubeconfig: Path, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._kubernetes = Kubernetes(kubeconfig)
        self._logs = PodLogs(self._kubernetes)
        self._telemetry = Telemetry(cluster)
        self._analysis = Analysis(cluster, kubeconfig)
        self._process = KubectlProcess(kubeconfig)
        self._limit = TimeLimit()
        self._waited = 0.0
        """Seconds of the cluster's time that the present action has waited."""

    def close(self) -> None:
        self._kubernetes.close()
        self._telemetry.close()
        self._analysis.close()
        self._process.close()

    def stop(self) -> None:
        """Stop the action that runs in another thread, as soon as it checks its limit."""
        self._limit.stop()

    @staticmethod
    def names() -> tuple[str, ...]:
        return tuple(actions_of(Toolbox))

    @classmethod
    def descriptions(cls) -> dict[str, str]:
        """The signature and docstring of each action, for the agent."""
        return {name: describe(function) for name, function in actions_of(cls).items()}

    def perform(self, call: Call) -> str:
        """Perform a call; BadAction where its arguments are wrong or it fails."""
        function: Callable[..., str] = getattr(self, call.name)
        try:
            inspect.signature(function).bind(*call.arguments, **call.options)
        except TypeError as problem:
            raise BadAction(f"{call.name}: {problem}. {self.descriptions()[call.name]}") from problem
        self._limit, self._waited = TimeLimit(), 0.0
        try:
            answer = function(*call.arguments, **call.options)
        except ServiceError as problem:
            raise BadAction(f"{call.name}: {problem}") from problem
        return bounded(answer) or "(nothing)"

    # The actions

    @action
    def get_logs(self, namespace: str, service: str, tail: int = 200) -> str:
        """The last lines that the pods of a service, or one pod, have written, also before their latest restart."""
        _texts(namespace=namespace, service=service)
        return self._logs.of_service(namespace, service, max(1, int(tail)), self._limit.check)

    @action
    def get_metrics(self, query: str, minutes: float = 0) -> str:
        """What Prometheus answers to a PromQL query: now, or over the last so many minutes."""
        _texts(query=query)
        return self._telemetry.query(query, float(minutes))

    @action
    def get_traces(self, service: str = "", minutes: float = 10, limit: int = 5) -> str:
        """Recent traces through a service, as trees of calls; without a service, the names of those that have some."""
        _texts(service=service)
        return self._telemetry.traces(service, float(minutes), int(limit))

    @action
    def get_alerts(self) -> str:
        """The alerts that are firing or pending now."""
        return self._telemetry.alerts()

    @action
    def analyse(self, tool: str = "", arguments: Any = None) -> str:
        """Ask a diagnostic tool over objects, events, metrics, logs and traces together; without one, which there are.

        For example analyse("alert_summary") or analyse("get_k8_spec", {"k8_object_name": "Deployment/some-name"}).
        """
        _texts(tool=tool)
        if arguments is not None and not isinstance(arguments, dict):
            raise BadAction("analyse takes a tool's arguments as a dictionary")
        return self._analysis.call(tool, arguments or {})

    @action
    def exec_shell(self, command: str) -> str:
        """Run a command line: kubectl, joined by ; or &&, piped into grep, head, tail, sort, uniq, wc, cut, tr.

        A manifest can be given with `kubectl apply -f - <<EOF`. Other programs and files are not there.
        """
        _texts(command=command)
        return command_line.run(command, self._run_kubectl, self._wait, self._limit)

    @action
    def kubectl(self, arguments: str) -> str:
        """Run one kubectl command, for example kubectl("get pods --all-namespaces")."""
        _texts(arguments=arguments)
        text = arguments.strip()
        return self.exec_shell(text if text.startswith("kubectl ") else f"kubectl {text}")

    @action
    def wait(self, seconds: float) -> str:
        """Let time pass in the system, up to ten minutes at once; it costs you that time, but no more."""
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST_WAIT:
            raise BadAction(f"wait takes a number of seconds up to {_LONGEST_WAIT:g}")
        self._wait(float(seconds))
        return f"{seconds:g} seconds have passed"

    @action
    def submit(self, solution: Any = None, stage: str | int | None = None) -> str:
        """Answer the question of the present stage. There is one submission per stage.

        With `stage`, by name or number, a repeated answer is not taken for the answer to the next stage.
        """
        raise AssertionError("a submission goes to the episode, not to the cluster")

    # Implementation

    def _wait(self, seconds: float) -> None:
        """Wait in parts, so that a time limit ends a wait on a real cluster."""
        left = min(seconds, _LONGEST_WAIT - self._waited)
        self._waited += max(left, 0.0)
        while left > 0:
            self._limit.check()
            part = min(left, _WAIT_PART)
            self._limit.extend(part)
            self._cluster.wait(part)
            left -= part

    def _run_kubectl(self, words: list[str], stdin: str) -> tuple[int, str]:
        return self._process.run(kubectl_policy.check(words), stdin, self._limit)


def _texts(**values: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, str) or "\0" in value:
            raise BadAction(f"{name} must be a text")
