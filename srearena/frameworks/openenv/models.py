"""What goes over the wire."""

from __future__ import annotations

from openenv.core.env_server.types import Action, Observation
from pydantic import Field


class IncidentAction(Action):
    text: str = Field(description='One action, such as kubectl("get pods") or submit("Yes")')


class IncidentObservation(Observation):
    text: str = Field(default="", description="The answer to the action, or the task")
    question: str = Field(default="", description="The question of the stage that is open")
