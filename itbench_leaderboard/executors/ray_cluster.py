"""Execute attempts on the machines of a Ray cluster; their files are copied back and published here.

If a worker or machine is lost, Ray restarts its attempt on another one, in an empty workspace. A run that loses its
machine too often is an environment error, and the leaderboard's own retries apply. Recordings, prompts and MCP server
tables are sent to each machine once, without ground truths.
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
from itbench_leaderboard.executors import bundles
from itbench_leaderboard.executors.bundles import Bundle
from itbench_leaderboard.files import write_json
from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Outcome, Report
from itbench_leaderboard.runner import Attempt

_LOST_RETRIES = 3  # chosen


def _execute_remotely(document: dict[str, Any], sent: list[tuple[str, Bundle]]) -> tuple[dict[str, Any], bytes]:
    """Make one attempt on the remote machine; returns the report and an archive of the workspace."""
    import tempfile

    import ray

    from itbench_leaderboard.executors.local import Local

    document = bundles.unpacked(document, sent, ray.get)
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        attempt = Attempt(1, Path(folder))
        attempt.workspace.mkdir()
        job = replace(Job.from_document(document), workspace=str(attempt.workspace))
        report = Local().execute(job, attempt)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            archive.add(attempt.workspace, arcname=".", filter=_without_evidence)
        return report.as_document(), packed.getvalue()


def _without_evidence(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(member.name).parts
    skipped = parts[:1] in (("evidence",), (".git",), (".zero",))
    return None if skipped or not (member.isfile() or member.isdir()) else member


class RayCluster:
    """The executor of a Ray cluster."""

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
            # Ray installs a handler that ends the process at once; runs must be reset first.
            signal.signal(signal.SIGTERM, ending)
        self._requested = {"CPU": cpus, **(resources or {})}
        self._remote = ray.remote(_execute_remotely).options(
            num_cpus=cpus, resources=resources or {}, max_retries=_LOST_RETRIES
        )
        self._shared_files = shared_files
        self._sent: dict[str, Bundle] = {}
        self._sending = threading.Lock()
        self._pending: set[Any] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def warnings(self) -> list[str]:
        """Reasons why runs may never start. Not an error: an autoscaling cluster may add a node later."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if any(all(node.get(name, 0) >= amount for name, amount in self._requested.items()) for node in nodes):
            return []
        requested = ", ".join(f"{name}={amount:g}" for name, amount in self._requested.items())
        return [f"no node of the Ray cluster has what a run asks for ({requested}): runs wait until one has"]

    def _bundles(self, document: dict[str, Any]) -> list[tuple[str, Bundle]]:
        """Bundles of the job's local files, packed on first use and stored in the cluster."""
        if self._shared_files:
            return []
        result = []
        with self._sending:
            for path, prompt in bundles.local_paths(document):
                if path not in self._sent:
                    pack = bundles.pack_prompt if prompt else bundles.pack
                    self._sent[path] = pack(Path(path), self._ray.put)
                result.append((path, self._sent[path]))
        return result

    def execute(self, job: Job, attempt: Attempt) -> Report:
        ray = self._ray
        document = json.loads(json.dumps(job.as_document(), default=str))
        try:
            sent = self._bundles(document)
        except (OSError, ray.exceptions.RayError) as problem:
            return Report(Outcome.ENVIRONMENT_ERROR, f"could not be sent to the Ray cluster: {problem}")
        with self._lock:
            if self._stopped:
                return Report(Outcome.INTERRUPTED, "stopped")
            reference = self._remote.remote(document, sent)
            self._pending.add(reference)
        try:
            report, packed = ray.get(reference)
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
        write_json(attempt.directory / "report.json", report)
        return Report.from_document(report)

    def _ending(self) -> bool:
        return self._stopped

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            pending = list(self._pending)
        for reference in pending:
            with suppress(Exception):  # it may have ended already
                self._ray.cancel(reference, force=True)

    def close(self) -> None:
        self._ray.shutdown()
