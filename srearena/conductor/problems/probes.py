"""Probes that ask what the program does not serve."""

from __future__ import annotations

from srearena.conductor.problems.injected import UNDO, InjectedProblem
from srearena.conductor.problems.registry import problem


@problem("liveness_probe_misconfiguration_hotel_reservation", app="hotel_reservation", service="recommendation")
@problem("liveness_probe_misconfiguration_social_network", app="social_network", service="user-service")
class LivenessProbeMisconfiguration(InjectedProblem):
    family = "liveness_probe_misconfiguration"
    fault = "liveness_probe_misconfiguration"
    explanation = "The liveness probe of {service} asks /healthz on port 8080, where nothing answers: it is restarted."
    remedy = UNDO


@problem("readiness_probe_misconfiguration_hotel_reservation", app="hotel_reservation", service="frontend")
@problem("readiness_probe_misconfiguration_social_network", app="social_network", service="user-service")
class ReadinessProbeMisconfiguration(InjectedProblem):
    family = "readiness_probe_misconfiguration"
    difficulty = "easy"
    fault = "readiness_probe_misconfiguration"
    explanation = "The readiness probe of {service} asks /healthz on port 8080, where nothing answers: never ready."
    remedy = UNDO
