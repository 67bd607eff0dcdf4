"""`RayMachines`: work on the machines of a Ray cluster, for runs, proofs and the leaderboard.

Ray is an extra and imported when it is used. Its handler of SIGTERM, which ends the process at once, is not installed:
who uses this resets runs first.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from typing import Any, TextIO, cast

from srearena.closeable import Closeable
from srearena.errors import SreArenaError

ATTEMPTS = 4
"""How often work is tried whose machine is lost; chosen."""
Work = Callable[[list[Any]], Iterator[tuple[Hashable, Any]]]
"""Runs on a machine: yields a name and a result for each item, as it is done."""


class RayUnavailable(SreArenaError):
    """Ray is not installed, or there is no cluster at the address."""


class _OwnStream:
    """A text stream without what Ray's threads print there on lost nodes: that goes to standard error."""

    def __init__(self, output: TextIO) -> None:
        self.output = output

    def write(self, text: str) -> int:
        from_ray = threading.current_thread().name.startswith("ray_")
        return (sys.stderr if from_ray else self.output).write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.output, name)


def take_output() -> None:
    """Keep standard output for what we print alone, until the process ends; calling it again does nothing.

    Ray's threads print to `sys.stdout`, and its C++ part writes to file descriptor 1, also while the process ends.
    """
    output = sys.stdout
    if isinstance(output, _OwnStream):
        return
    if _is_standard_output(output):
        output.flush()
        own = os.dup(1)
        os.dup2(2, 1)
        output = open(own, "w", buffering=1, encoding=output.encoding, closefd=False)  # noqa: SIM115
    sys.stdout = cast(TextIO, _OwnStream(output))


def _is_standard_output(stream: TextIO) -> bool:
    try:
        return stream.fileno() == 1
    except (OSError, ValueError):  # a stream in memory
        return False


class RayMachines(Closeable):
    """A connection to a Ray cluster, with what a piece of work reserves there."""

    def __init__(
        self, address: str | None = None, cpus: float = 1.0, resources: Mapping[str, float] | None = None
    ) -> None:
        try:
            import ray
        except ImportError as problem:
            raise RayUnavailable("--executor ray needs Ray: pip install 'srearena[ray]'") from problem
        self.ray: Any = ray
        ending = signal.getsignal(signal.SIGTERM)
        take_output()
        try:
            ray.init(
                address=address or "auto", log_to_driver=False, logging_level=logging.ERROR, configure_logging=False
            )
        except (ConnectionError, RuntimeError, ValueError) as problem:
            line = str(problem).splitlines()[0]
            raise RayUnavailable(f"no Ray cluster at {address or 'auto'}: {line}; start one: ray start") from problem
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ending)
        self._cpus, self._resources = cpus, dict(resources or {})
        self._lock = threading.Lock()
        self._pending: set[Any] = set()
        self.stopped = False

    @property
    def lost(self) -> type[Exception]:
        """The base class of what Ray raises where work failed, was cancelled, or its machine is gone."""
        return self.ray.exceptions.RayError  # type: ignore[no-any-return]

    def warnings(self) -> list[str]:
        """Reasons why work may never start. Not an error: an autoscaling cluster may add a node later."""
        requested = {"CPU": self._cpus, **self._resources}
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        if any(all(node.get(name, 0) >= amount for name, amount in requested.items()) for node in nodes):
            return []
        amounts = ", ".join(f"{name}={amount:g}" for name, amount in requested.items())
        return [f"no node of the Ray cluster has what a run asks for ({amounts}): runs wait until one has"]

    def processors(self) -> int:
        """How many pieces of work the cluster can do at a time."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1) // max(self._cpus, 0.01)))

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Start a function somewhere, and return Ray's reference to its result; None where `stop` was called."""
        remote = self.ray.remote(function).options(num_cpus=self._cpus, resources=self._resources, **options)
        with self._lock:
            if self.stopped:
                return None
            reference = remote.remote(*arguments)
            self._pending.add(reference)
        return reference

    def settle(self, reference: Any) -> None:
        """Forget a reference whose work has ended."""
        with self._lock:
            self._pending.discard(reference)

    def stop(self) -> None:
        """Cancel all work."""
        with self._lock:
            self.stopped = True
            pending = list(self._pending)
        for reference in pending:
            with suppress(Exception):  # it may have ended already
                self.ray.cancel(reference, force=True)

    def close(self) -> None:
        with redirect_stdout(sys.stderr):  # it prints what it has held back of lines that are alike
            self.ray.shutdown()

    def stream(self, work: Work, chunks: Sequence[Mapping[Hashable, Any]]) -> Iterator[tuple[Hashable, Any]]:
        """Do chunks of named items on the machines, and yield names and results as they are done.

        Where a machine is lost, the rest of its chunk is done elsewhere; after `ATTEMPTS` the result is None.
        """
        results: queue.Queue[tuple[Hashable, Any] | Exception | None] = queue.Queue()
        threads = [
            threading.Thread(target=self._follow, args=(work, dict(chunk), results), daemon=True) for chunk in chunks
        ]
        for thread in threads:
            thread.start()
        running = len(threads)
        try:
            while running:
                result = results.get()
                if result is None:
                    running -= 1
                elif isinstance(result, Exception):
                    raise result
                else:
                    yield result
        finally:
            if running:
                self.stop()

    def _follow(self, work: Work, waiting: dict[Hashable, Any], results: queue.Queue[Any]) -> None:
        try:
            for _ in range(ATTEMPTS):
                if not waiting or self.stopped:
                    break
                items = list(waiting.values())
                references = self.submit(work, items, num_returns="streaming", max_retries=0)
                if references is None:
                    break
                try:
                    for reference in references:
                        name, result = self.ray.get(reference)
                        waiting.pop(name)
                        results.put((name, result))
                except self.ray.exceptions.RayTaskError as failure:
                    raise SreArenaError(f"a machine of the Ray cluster failed: {failure.cause}") from failure
                except self.lost:
                    continue
                finally:
                    self.settle(references)
            for name in waiting:
                results.put((name, None))
        except Exception as error:
            results.put(error)
        finally:
            results.put(None)
