"""Execute attempts on the machines of a Ray cluster; their files are copied back and published here.

If a worker or machine is lost, Ray restarts its attempt on another one, in an empty workspace. A run that loses its
machine too often is an environment error, and the leaderboard's own retries apply. Recordings, prompts and MCP server
tables are sent to each machine once, without ground truths.
"""

from __future__ import annotations

import io
import json
import tarfile
import threading
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
from srearena.ray_machines import RayMachines, RayUnavailable

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
            self._machines = RayMachines(address, cpus, resources)
        except RayUnavailable as problem:
            raise ConfigurationError(str(problem)) from problem
        self._shared_files = shared_files
        self._sent: dict[str, Bundle] = {}
        self._sending = threading.Lock()

    def warnings(self) -> list[str]:
        return self._machines.warnings()

    def _bundles(self, document: dict[str, Any]) -> list[tuple[str, Bundle]]:
        """Bundles of the job's local files, packed on first use and stored in the cluster."""
        if self._shared_files:
            return []
        result = []
        with self._sending:
            for path, prompt in bundles.local_paths(document):
                if path not in self._sent:
                    pack = bundles.pack_prompt if prompt else bundles.pack
                    self._sent[path] = pack(Path(path), self._machines.ray.put)
                result.append((path, self._sent[path]))
        return result

    def execute(self, job: Job, attempt: Attempt) -> Report:
        machines, ray = self._machines, self._machines.ray
        document = json.loads(json.dumps(job.as_document(), default=str))
        try:
            sent = self._bundles(document)
        except (OSError, machines.lost) as problem:
            return Report(Outcome.ENVIRONMENT_ERROR, f"could not be sent to the Ray cluster: {problem}")
        reference = machines.submit(_execute_remotely, document, sent, max_retries=_LOST_RETRIES)
        if reference is None:
            return Report(Outcome.INTERRUPTED, "stopped")
        try:
            report, packed = ray.get(reference)
        except ray.exceptions.TaskCancelledError:
            return Report(Outcome.INTERRUPTED, "stopped")
        except machines.lost as problem:
            if machines.stopped:
                return Report(Outcome.INTERRUPTED, "stopped")
            return Report(Outcome.ENVIRONMENT_ERROR, f"lost on the Ray cluster: {str(problem).splitlines()[0]}")
        finally:
            machines.settle(reference)
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
            archive.extractall(attempt.workspace, filter="data")
        write_json(attempt.directory / "report.json", report)
        return Report.from_document(report)

    def stop(self) -> None:
        self._machines.stop()

    def close(self) -> None:
        self._machines.close()
