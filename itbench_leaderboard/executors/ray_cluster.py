"""Attempts on the machines of a Ray cluster; what they leave is brought home and published here.

A worker or a machine that is lost takes its attempt with it: Ray starts it again elsewhere, in an empty workspace. A
run that loses its machine more often than that is an environment error, and the leaderboard's own retries apply.
Recordings, prompts and tables of servers are sent along, once to each machine, without answer keys.
"""

from __future__ import annotations

import io
import json
import logging
import signal
import tarfile
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from itbench_leaderboard.errors import ConfigurationError
from itbench_leaderboard.executors import parcels
from itbench_leaderboard.executors.parcels import Parcel
from itbench_leaderboard.files import write_json
from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Outcome, Report
from itbench_leaderboard.runs import Attempt

_LOST_RETRIES = 3


def _elsewhere(document: dict[str, Any], sent: list[tuple[str, Parcel]]) -> tuple[dict[str, Any], bytes]:
    """On the other machine: one attempt in a directory of its own, the report and what it left."""
    import tempfile

    import ray

    from itbench_leaderboard.executors.local import Local

    document = parcels.unpacked(document, sent, ray.get)
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        attempt = Attempt(1, Path(folder))
        attempt.workspace.mkdir()
        job = replace(Job.from_document(document), workspace=str(attempt.workspace))
        report = Local().carry_out(job, attempt)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            archive.add(attempt.workspace, arcname=".", filter=_kept)
        return report.as_document(), packed.getvalue()


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(member.name).parts
    skipped = parts[:1] in (("evidence",), (".git",), (".zero",))
    return None if skipped or not (member.isfile() or member.isdir()) else member


class RayCluster:
    def __init__(
        self,
        address: str | None,
        cpus: float = 1.0,
        resources: dict[str, float] | None = None,
        *,
        shared_files: bool = False,
    ) -> None:
        try:
            import ray
        except ImportError as problem:
            raise ConfigurationError("--executor ray needs Ray: pip install 'srearena[ray]'") from problem
        self._ray: Any = ray
        ending = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(
                address=address or "auto", log_to_driver=False, logging_level=logging.ERROR, configure_logging=False
            )
        except (ConnectionError, RuntimeError, ValueError) as problem:
            line = str(problem).splitlines()[0]
            raise ConfigurationError(
                f"no Ray cluster at {address or 'auto'}: {line}; start one: ray start"
            ) from problem
        if threading.current_thread() is threading.main_thread():
            # Ray takes the signal for itself and ends the process on the spot; runs under way are to be given up first.
            signal.signal(signal.SIGTERM, ending)
        self._wanted = {"CPU": cpus, **(resources or {})}
        self._remote = ray.remote(_elsewhere).options(
            num_cpus=cpus, resources=resources or {}, max_retries=_LOST_RETRIES
        )
        self._shared_files = shared_files
        self._sent: dict[str, Parcel] = {}
        self._sending = threading.Lock()
        self._pending: set[Any] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def doubts(self) -> list[str]:
        """Why runs may never begin. No error: a cluster that grows by itself may have such a node later."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if any(all(node.get(name, 0) >= amount for name, amount in self._wanted.items()) for node in nodes):
            return []
        wanted = ", ".join(f"{name}={amount:g}" for name, amount in self._wanted.items())
        return [f"no node of the Ray cluster has what a run asks for ({wanted}): runs wait until one has"]

    def _parcels(self, document: dict[str, Any]) -> list[tuple[str, Parcel]]:
        """What the job needs of this machine, packed on its first use and kept in the cluster's store."""
        if self._shared_files:
            return []
        found = []
        with self._sending:
            for path, prompt in parcels.needed(document):
                if path not in self._sent:
                    pack = parcels.pack_prompt if prompt else parcels.pack
                    self._sent[path] = pack(Path(path), self._ray.put)
                found.append((path, self._sent[path]))
        return found

    def carry_out(self, job: Job, attempt: Attempt) -> Report:
        ray = self._ray
        document = json.loads(json.dumps(job.as_document(), default=str))
        try:
            sent = self._parcels(document)
        except (OSError, ray.exceptions.RayError) as problem:
            return Report(Outcome.ENVIRONMENT_ERROR, f"could not be sent to the Ray cluster: {problem}")
        with self._lock:
            if self._stopped:
                return Report(Outcome.INTERRUPTED, "stopped")
            reference = self._remote.remote(document, sent)
            self._pending.add(reference)
        try:
            told, packed = ray.get(reference)
        except ray.exceptions.TaskCancelledError:
            return Report(Outcome.INTERRUPTED, "stopped")
        except ray.exceptions.RayError as problem:
            if self._ending():
                return Report(Outcome.INTERRUPTED, "stopped")
            return Report(Outcome.ENVIRONMENT_ERROR, f"lost on the Ray cluster: {str(problem).splitlines()[0]}")
        finally:
            with self._lock:
                self._pending.discard(reference)
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
            archive.extractall(attempt.workspace, filter="data")
        write_json(attempt.place / "report.json", told)
        return Report.from_document(told)

    def _ending(self) -> bool:
        return self._stopped

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            pending = list(self._pending)
        for reference in pending:
            with suppress(Exception):  # it may have ended meanwhile
                self._ray.cancel(reference, force=True)

    def close(self) -> None:
        self._ray.shutdown()
