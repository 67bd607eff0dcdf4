"""What a mitigation oracle is composed of: one small check per module, each saying why it cannot be gamed."""

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.fresh_pods import FreshPods
from srearena.conductor.oracles.checks.front_door import FrontDoor
from srearena.conductor.oracles.checks.intent import Intent
from srearena.conductor.oracles.checks.reachability import Reachability
from srearena.conductor.oracles.checks.readiness import Readiness
from srearena.conductor.oracles.checks.traffic import Traffic

__all__ = ["Check", "FreshPods", "FrontDoor", "Intent", "Reachability", "Readiness", "Traffic"]
