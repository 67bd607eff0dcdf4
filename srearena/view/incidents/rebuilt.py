"""The system of a finished trial, built again from its journal: a live incident whose clock stands still.

The baseline is the healthy system, and the fault is marked: the trial has been graded. An operator may let time pass,
to see what would have come next.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from srearena.cluster.base import TelemetryEndpoints
from srearena.conductor.worlds import EpisodeProcess
from srearena.view.incidents import objects
from srearena.view.incidents.base import IncidentError
from srearena.view.incidents.live import Access, LiveIncident
from srearena.view.incidents.signals import Signals

REBUILT = "rebuilt"
_BEFORE_FAULT = 600.0
"""Seconds of the healthy system that are shown."""
_LONGEST_HISTORY = 3500.0
_LONGEST_ADVANCE = 3600.0


class RebuiltIncident(LiveIncident):
    """The world of a trial at one of its steps, in a process of its own that the incident ends."""

    def __init__(self, identity: str, episode: EpisodeProcess, facts: dict[str, Any]) -> None:
        observed = episode.observe()
        telemetry = TelemetryEndpoints(**observed["telemetry"])
        access = Access(Path(observed["kubeconfig"]), telemetry, facts=facts)
        super().__init__(identity, str(observed["application"]), REBUILT, access)
        self._episode = episode
        self._fault: float | None = observed["fault"]
        self._handed_over = float(observed["handed_over"])
        healthy_until = self._fault if self._fault is not None else self._handed_over
        self._signals = Signals(healthy_until=healthy_until)
        self._observed = {
            kind: {objects.identity(obj): obj for obj in observed["healthy"].get(kind, [])} for kind in objects.COMPARED
        }
        self._observed_at = healthy_until
        self._history = min(self._now() - healthy_until + _BEFORE_FAULT, _LONGEST_HISTORY)

    def _overview(self) -> dict[str, Any]:
        marks = [{"at": self._handed_over, "text": "the agent starts", "kind": "phase"}]
        if self._fault is not None:
            marks.append({"at": self._fault, "text": "the fault", "kind": "fault"})
        return {**super()._overview(), "marks": marks}

    def _objects(self, kind: str) -> dict[str, Any]:
        return {**super()._objects(kind), "healthy": True}

    def _clock(self) -> dict[str, Any]:
        return {"speed": 0.0, "usual": 0.0, "stands": True}

    def set_clock(self, action: str, value: float) -> dict[str, Any]:
        if action != "advance" or not 0 < value <= _LONGEST_ADVANCE:
            raise IncidentError(
                f"the clock stands still, and can be advanced by at most {_LONGEST_ADVANCE:g} s at once"
            )
        self._episode.wait(value)
        with self._lock:
            self._answers.clear()
        return {"clock": self._clock()}

    def close(self) -> None:
        super().close()
        self._episode.close()
