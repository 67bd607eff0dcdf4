"""The episode behind `srearena serve`, as the tools see it: what there is to work with, submissions, the record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from sre_tools.errors import ToolError
from srearena.cluster.base import TelemetryEndpoints

_TIMEOUT = 900.0
"""Letting ten minutes pass is a call like any other."""


class Connection:
    def __init__(self, url: str, token: str) -> None:
        if not url or not token:
            raise ToolError("which episode? Set SREARENA_URL and SREARENA_TOKEN as `srearena serve` prints them")
        self._client = httpx.Client(
            base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=_TIMEOUT, trust_env=False
        )
        self._task = self._ask("GET", "/task")

    def close(self) -> None:
        self._client.close()

    def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        try:
            answer = self._client.request(method, path, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise ToolError(f"the episode does not answer ({problem}): it may be over") from problem
        try:
            document: dict[str, Any] = answer.json()
        except ValueError as problem:
            raise ToolError(f"this is not an episode of `srearena serve`: HTTP {answer.status_code}") from problem
        if answer.status_code >= 400:
            raise ToolError(str(document.get("error", f"HTTP {answer.status_code}")))
        return document

    @property
    def kubeconfig(self) -> Path:
        return Path(self._task["kubeconfig"])

    @property
    def telemetry(self) -> TelemetryEndpoints:
        named = ("prometheus", "loki", "jaeger")
        told = {name: self._task.get(name, "") for name in named}
        return TelemetryEndpoints(**told, token=self._task.get("telemetry_token", ""))

    @property
    def description(self) -> str:
        return f"{self._task['description']}\n\n{self._task['question']}"

    def status(self) -> dict[str, Any]:
        return self._ask("GET", "/status")

    def submit(self, solution: Any) -> dict[str, Any]:
        return self._ask("POST", "/submit", {"solution": solution})

    def wait(self, seconds: float) -> str:
        """Let time pass in the environment."""
        return str(self._ask("POST", "/act", {"action": f"wait({seconds!r})"})["state"])

    def audit(self, **entry: Any) -> None:
        """Write a call into the episode's record."""
        self._ask("POST", "/audit", entry)
