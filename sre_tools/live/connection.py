"""HTTP client of an episode behind `srearena serve`: task, endpoints, submissions, time, audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from sre_tools.errors import ToolError
from srearena.cluster.base import TelemetryEndpoints

_TIMEOUT = 900.0
"""Seconds; `wait` may let ten minutes pass in one request."""


class Connection:
    def __init__(self, url: str, token: str) -> None:
        if not url or not token:
            raise ToolError("which episode? Set SREARENA_URL and SREARENA_TOKEN as `srearena serve` prints them")
        self._client = httpx.Client(
            base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=_TIMEOUT, trust_env=False
        )
        self._task = self._request("GET", "/task")

    def close(self) -> None:
        self._client.close()

    def _request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        try:
            response = self._client.request(method, path, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise ToolError(f"the episode does not answer ({problem}): it may be over") from problem
        try:
            document: dict[str, Any] = response.json()
        except ValueError as problem:
            raise ToolError(f"this is not an episode of `srearena serve`: HTTP {response.status_code}") from problem
        if response.status_code >= 400:
            raise ToolError(str(document.get("error", f"HTTP {response.status_code}")))
        return document

    @property
    def kubeconfig(self) -> Path:
        return Path(self._task["kubeconfig"])

    @property
    def telemetry(self) -> TelemetryEndpoints:
        urls = {name: self._task.get(name, "") for name in ("prometheus", "loki", "jaeger")}
        return TelemetryEndpoints(**urls, token=self._task.get("telemetry_token", ""))

    @property
    def description(self) -> str:
        return f"{self._task['description']}\n\n{self._task['question']}"

    def status(self) -> dict[str, Any]:
        return self._request("GET", "/status")

    def submit(self, solution: Any, stage: str | int | None = None) -> dict[str, Any]:
        """Submit an answer to a stage, by default the current one; repeated for the same stage, it changes nothing."""
        return self._request("POST", "/submit", {"solution": solution, "stage": stage})

    def wait(self, seconds: float) -> str:
        """Let time pass in the environment."""
        return str(self._request("POST", "/act", {"action": f"wait({seconds!r})"})["state"])

    def audit(self, **entry: Any) -> None:
        """Record a tool call in the episode's session."""
        self._request("POST", "/audit", entry)
