"""The checks of a mitigation oracle, one per module; each module says why its check cannot be gamed."""

from srearena.conductor.oracles.checks.admission import Admission
from srearena.conductor.oracles.checks.backends import Backends
from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.declared_probes import DeclaredProbes
from srearena.conductor.oracles.checks.fresh_pods import FreshPods
from srearena.conductor.oracles.checks.frontend import FrontendAvailability
from srearena.conductor.oracles.checks.intent import Intent
from srearena.conductor.oracles.checks.journeys import Journeys
from srearena.conductor.oracles.checks.leftovers import Leftovers
from srearena.conductor.oracles.checks.platform import Platform
from srearena.conductor.oracles.checks.processes import Processes
from srearena.conductor.oracles.checks.reachability import Reachability
from srearena.conductor.oracles.checks.readiness import Readiness
from srearena.conductor.oracles.checks.spans import Spans
from srearena.conductor.oracles.checks.stored_data import StoredData
from srearena.conductor.oracles.checks.traffic import Traffic

__all__ = [
    "Admission",
    "Backends",
    "Check",
    "DeclaredProbes",
    "FreshPods",
    "FrontendAvailability",
    "Intent",
    "Journeys",
    "Leftovers",
    "Platform",
    "Processes",
    "Reachability",
    "Readiness",
    "Spans",
    "StoredData",
    "Traffic",
]
