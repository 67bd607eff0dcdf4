"""Incidents as an OpenEnv environment: server, client and models; the extra `openenv`.

`uvicorn srearena.frameworks.openenv.app:app` serves it, with OpenEnv's web interface where
`ENABLE_WEB_INTERFACE=true`.
"""

from srearena.frameworks.openenv.client import IncidentClient
from srearena.frameworks.openenv.models import IncidentAction, IncidentObservation

__all__ = ["IncidentAction", "IncidentClient", "IncidentObservation"]
