"""Defective images: a bug in one service, or the same wrong image in several."""

from __future__ import annotations

from srearena.conductor.problems.injected import CONTAINER, RESTORE
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem

_SERVICES = ("frontend", "geo", "profile", "rate", "recommendation", "reservation", "search", "user")
_MONGOS = tuple(f"mongodb-{name}" for name in ("geo", "profile", "rate", "recommendation", "reservation", "user"))


class BuildProblem(OriginProblem):
    fault = "incorrect_image"
    remedy = RESTORE
    restores = (f"{CONTAINER}/image",)


@problem(
    "misconfig_app_hotel_res",
    app="hotel_reservation",
    service="geo",
    image="yinfangchen/geo:app3",
    victims=("search", "frontend"),
)
class BuggyBuild(BuildProblem):
    family = "misconfig_app_hotel_res"
    level = "application"
    fault_type = "Code Defect"
    explanation = "{service} runs the build {image}, which never fills its index: every search near a place fails."


@problem(
    "faulty_image_correlated", app="hotel_reservation", service=_SERVICES, image="jackcuii/hotel-reservation:latest"
)
class FaultyImageCorrelated(BuildProblem):
    family = "faulty_image_correlated"
    level = "correlated"
    explanation = "All services run the image {image}, which cannot be pulled: {service}."


@problem("update_incompatible_correlated", app="hotel_reservation", service=_MONGOS, image="mongo:8.0.14-rc0")
class UpdateIncompatibleCorrelated(BuildProblem):
    family = "update_incompatible_correlated"
    level = "correlated"
    difficulty = "hard"
    system_level = "Application"
    fault_type = "Operation Error"
    explanation = (
        "All databases were updated to {image} in one step, over several releases whose data it cannot read: {service}."
    )
