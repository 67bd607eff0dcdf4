"""A machine for tests: one network namespace, virtual time, and containers started on it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.containers.container import Container, ContainerConfig, KernelFacts
from srearena.cluster.embedded.machine.files.streams import BytesFile, Capture
from srearena.cluster.embedded.machine.networking.loopback import LoopbackNetwork
from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.registry import program_for

START = 1_763_000_000.0


@dataclass
class Outcome:
    out: str
    err: str
    status: int | None
    """None: still running when patience ended."""


class Machine:
    """Implements what a container asks of its host."""

    def __init__(self, seed: int = 1, clock: Clock | None = None) -> None:
        self.clock = clock if clock is not None else Clock(START)
        self.random = random.Random(seed)
        self.pod: dict[str, Any] = {}
        self.hostname = "web-0"
        self.node_name = "worker-1"
        self.kernel = KernelFacts(booted_at=START - 86400)
        self.namespace = NetworkNamespace(self.clock, ("10.244.1.5",))
        self.network = LoopbackNetwork(self.namespace, [("web-0", "10.244.1.5")])

    def container(self, image: str, *command: str, start: bool = True, **settings: Any) -> Container:
        config = ContainerConfig("app", image, command=command or None, **settings)
        container = Container(config, self, program=program_for(image), container_id="c0ffee")
        if start:
            container.start()
            self.clock.advance(0.01)
        return container

    def idle(self, image: str = "busybox", **settings: Any) -> Container:
        """A container to run commands in."""
        return self.container(image, "sleep", "1000000", **settings)

    def wait(self, process: Process, patience: float = 120.0) -> None:
        deadline = self.clock.now + patience
        while not process.done.is_set and self.clock.now < deadline:
            following = self.clock.next_event_at()
            self.clock.run_until(deadline if following is None else min(deadline, following))

    def run(self, container: Container, argv: Sequence[str], *, stdin: bytes = b"", patience: float = 120.0) -> Outcome:
        out, err = Capture(), Capture()
        process = container.exec(argv, stdin=BytesFile(stdin), stdout=out, stderr=err)
        self.wait(process, patience)
        return Outcome(out.text, err.text, process.done.value if process.done.is_set else None)

    def sh(self, script: str, container: Container | None = None, **settings: Any) -> Outcome:
        """Run a script with the image's own sh."""
        inside = container if container is not None else self.idle()
        return self.run(inside, ["sh", "-c", script], **settings)
