"""Probes for an endpoint that the program does not serve."""

from __future__ import annotations

from srearena.conductor.problems.injected import UNDO, InjectedProblem
from srearena.conductor.problems.registry import problem


@problem("liveness_probe_misconfiguration_astronomy_shop", app="astronomy_shop", service="frontend")
@problem("liveness_probe_misconfiguration_hotel_reservation", app="hotel_reservation", service="recommendation")
@problem("liveness_probe_misconfiguration_social_network", app="social_network", service="user-service")
class LivenessProbeMisconfiguration(InjectedProblem):
    family = "liveness_probe_misconfiguration"
    fault = "liveness_probe_misconfiguration"
    explanation = (
        "The liveness probe of {service} asks port 8080 for /healthz, which it does not serve: it is restarted."
    )
    remedy = UNDO


@problem("readiness_probe_misconfiguration_astronomy_shop", app="astronomy_shop", service="frontend")
@problem("readiness_probe_misconfiguration_hotel_reservation", app="hotel_reservation", service="frontend")
@problem("readiness_probe_misconfiguration_social_network", app="social_network", service="user-service")
class ReadinessProbeMisconfiguration(InjectedProblem):
    family = "readiness_probe_misconfiguration"
    difficulty = "easy"
    fault = "readiness_probe_misconfiguration"
    explanation = "The readiness probe of {service} asks port 8080 for /healthz, which it does not serve: never ready."
    remedy = UNDO
