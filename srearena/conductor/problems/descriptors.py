"""Programs that may open too little."""

from __future__ import annotations

from srearena.conductor.problems.injected import UNDO, InjectedProblem
from srearena.conductor.problems.registry import problem
from srearena.generators.fault.actors import deployment
from srearena.generators.fault.inject_node import FORTIO

_PARTNER, _CONNECTIONS = "partner-feed", 300


@problem("file_descriptor_exhaustion", app="hotel_reservation", service="frontend", limit=256)
class FileDescriptorExhaustion(InjectedProblem):
    """With a partner beside the application that keeps some hundred connections to it open, which is well at first."""

    family = "file_descriptor_exhaustion"
    level = "application"
    difficulty = "hard"
    fault = "descriptor_limit"
    explanation = (
        "{service} is started with a limit of {limit} open files, and its partners keep more connections than that: "
        "the kernel takes further ones, and the program never does."
    )
    remedy = UNDO

    def set_up(self) -> None:
        words = ["load", "-c", str(_CONNECTIONS), "-qps", "1", "-t", "0", f"http://{self.services[0]}:5000/"]
        container = {"name": "fortio", "image": FORTIO, "args": words}
        self.kubernetes.apply(deployment(_PARTNER, self.namespace, {"containers": [container]}))
        self.cluster.wait(60)
