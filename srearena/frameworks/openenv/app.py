"""The server: `uvicorn srearena.frameworks.openenv.app:app --port 8000`."""

from __future__ import annotations

import os

from openenv.core.env_server.http_server import create_app

from srearena.frameworks.incidents import IncidentPool, framework_spec
from srearena.frameworks.openenv.environment import STAGES, IncidentEnvironment, words
from srearena.frameworks.openenv.models import IncidentAction, IncidentObservation

_SESSIONS = int(os.environ.get("SREARENA_SESSIONS", "8"))
_pool = IncidentPool(framework_spec(words(STAGES, "")))
"""One for all sessions, so that several of them start from the same prepared world."""

app = create_app(
    lambda: IncidentEnvironment(_pool),
    IncidentAction,
    IncidentObservation,
    env_name="srearena",
    max_concurrent_envs=_SESSIONS,
)
