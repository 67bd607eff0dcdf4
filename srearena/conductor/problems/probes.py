"""Probes for an endpoint that the program does not serve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from srearena.conductor.problems.injected import CONTAINER, POD, RESTORE, InjectedProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import components
from srearena.conductor.problems.variation import Choice


@problem("liveness_probe_misconfiguration_astronomy_shop", app="astronomy_shop", service="frontend")
@problem("liveness_probe_misconfiguration_hotel_reservation", app="hotel_reservation", service="recommendation")
@problem("liveness_probe_misconfiguration_social_network", app="social_network", service="user-service")
class LivenessProbeMisconfiguration(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {
        "service": components,
        "path": ("/healthz", "/health", "/livez", "/ready"),
    }
    family = "liveness_probe_misconfiguration"
    fault = "liveness_probe_misconfiguration"
    explanation = "The liveness probe of {service} asks port 8080 for a page that it does not serve: it is restarted."
    remedy = RESTORE
    restores = (f"{CONTAINER}/livenessProbe", f"{POD}/terminationGracePeriodSeconds")


@problem("readiness_probe_misconfiguration_astronomy_shop", app="astronomy_shop", service="frontend")
@problem("readiness_probe_misconfiguration_hotel_reservation", app="hotel_reservation", service="frontend")
@problem("readiness_probe_misconfiguration_social_network", app="social_network", service="user-service")
class ReadinessProbeMisconfiguration(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {
        "service": components,
        "path": ("/healthz", "/health", "/livez", "/ready"),
    }
    family = "readiness_probe_misconfiguration"
    difficulty = "easy"
    fault = "readiness_probe_misconfiguration"
    explanation = "The readiness probe of {service} asks port 8080 for a page that it does not serve: never ready."
    remedy = RESTORE
    restores = (f"{CONTAINER}/readinessProbe",)
