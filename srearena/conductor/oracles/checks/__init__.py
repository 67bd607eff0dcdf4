"""The checks of a mitigation oracle, one per module; each module says why its check cannot be gamed."""

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.fresh_pods import FreshPods
from srearena.conductor.oracles.checks.frontend import FrontendAvailability
from srearena.conductor.oracles.checks.intent import Intent
from srearena.conductor.oracles.checks.reachability import Reachability
from srearena.conductor.oracles.checks.readiness import Readiness
from srearena.conductor.oracles.checks.traffic import Traffic

__all__ = ["Check", "FreshPods", "FrontendAvailability", "Intent", "Reachability", "Readiness", "Traffic"]
