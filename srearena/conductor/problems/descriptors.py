"""Limits on open file descriptors."""

from __future__ import annotations

from srearena.conductor.problems.injected import CONTAINER, RESTORE, InjectedProblem
from srearena.conductor.problems.registry import problem
from srearena.generators.fault.actors import deployment
from srearena.generators.fault.inject_node import FORTIO

_PARTNER, _CONNECTIONS = "partner-feed", 300


@problem("file_descriptor_exhaustion", app="hotel_reservation", service="frontend", limit=256)
class FileDescriptorExhaustion(InjectedProblem):
    """Adds a client that keeps a few hundred connections to the application open, within the healthy limit."""

    family = "file_descriptor_exhaustion"
    level = "application"
    difficulty = "hard"
    fault = "descriptor_limit"
    explanation = (
        "{service} is started with a limit of {limit} open files, and its partners keep more connections than that: "
        "the kernel takes further ones, and the program never does."
    )
    remedy = RESTORE
    restores = (f"{CONTAINER}/command",)

    def set_up(self) -> None:
        words = ["load", "-c", str(_CONNECTIONS), "-qps", "1", "-t", "0", f"http://{self.services[0]}:5000/"]
        container = {"name": "fortio", "image": FORTIO, "args": words}
        self.kubernetes.apply(deployment(_PARTNER, self.namespace, {"containers": [container]}))
        self.cluster.wait(60)
