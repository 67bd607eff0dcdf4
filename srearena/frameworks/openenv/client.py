"""`IncidentClient`: the client of a served environment."""

from __future__ import annotations

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server.types import State

from srearena.frameworks.openenv.models import IncidentAction, IncidentObservation


class IncidentClient(EnvClient[IncidentAction, IncidentObservation, State]):
    def _step_payload(self, action: IncidentAction) -> dict[str, Any]:
        return {"text": action.text}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[IncidentObservation]:
        content = payload.get("observation", {})
        observation = IncidentObservation(
            text=content.get("text", ""),
            question=content.get("question", ""),
            done=payload.get("done", False),
            reward=payload.get("reward"),
            metadata=payload.get("metadata") or content.get("metadata") or {},
        )
        return StepResult(observation=observation, reward=observation.reward, done=observation.done)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)
