"""Healthy systems without a fault. The agent must report that nothing is wrong, name nothing, and break nothing."""

from __future__ import annotations

from srearena.conductor.oracles.localization import LocalizationOracle
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import problem
from srearena.service.apps import find_application
from srearena.utils.decorators import mark_fault_injected


def _former_ids(app: str) -> tuple[str, str]:
    return (f"noop_detection_{app}", f"noop_detection_{app}-1")


@problem("noop_hotel_reservation", app="hotel_reservation", aliases=(*_former_ids("hotel_reservation"), "noop"))
@problem("noop_social_network", app="social_network", aliases=_former_ids("social_network"))
@problem("noop_astronomy_shop", app="astronomy_shop", aliases=_former_ids("astronomy_shop"))
@problem("noop_blueprint_hotel_reservation", app="blueprint_hotel_reservation")
@problem("noop_fleetcast", app="fleetcast")
@problem("noop_online_boutique", app="online_boutique")
@problem("noop_train_ticket", app="train_ticket")
class Noop(Problem):
    family = "noop"
    level = "none"
    difficulty = "easy"
    repairable = False
    fault_type = "None"
    explanation = "Nothing is wrong: the system serves its users within its objectives."

    def __init__(self, app: str = "hotel_reservation") -> None:
        self.app = find_application(app)
        self.localization_oracle = LocalizationOracle(self)
        self.mitigation_oracle = MitigationOracle(problem=self)

    @mark_fault_injected
    def inject_fault(self) -> None:
        """Do nothing."""

    @mark_fault_injected
    def recover_fault(self) -> None:
        """Do nothing."""
