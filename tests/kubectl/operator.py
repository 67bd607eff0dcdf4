"""A person at a terminal: runs the real kubectl against a cluster of its own, and lets the cluster's time pass."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from srearena.cluster import Cluster
from srearena.go_programs import NO_COLLECTION

KUBECTL = shutil.which("kubectl")
_TIMEOUT = 60.0


@dataclass(slots=True)
class Result:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@dataclass(slots=True)
class Operator:
    cluster: Cluster
    home: Path
    namespace: str = "default"
    extra: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, stdin: str | None = None, timeout: float = _TIMEOUT) -> Result:
        """Run kubectl, whatever comes of it."""
        assert KUBECTL is not None
        done = subprocess.run(
            [KUBECTL, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=self._environment,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "KUBECONFIG": str(self.cluster.kubeconfig),
            **NO_COLLECTION,
            **self.extra,
        }

    @contextmanager
    def running(self, *arguments: str) -> Iterator[IO[str]]:
        """Run kubectl on the side, as in a second terminal; gives what it prints, ends it in the end."""
        assert KUBECTL is not None
        process = subprocess.Popen(
            [KUBECTL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._environment
        )
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl; it must succeed. Returns what it printed."""
        result = self.run(*arguments, stdin=stdin)
        assert result.code == 0, f"kubectl {' '.join(arguments)} failed:\n{result.err}\n{result.out}"
        return result.out

    def fails(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl; it must fail. Returns what it complained about."""
        result = self.run(*arguments, stdin=stdin)
        assert result.code != 0, f"kubectl {' '.join(arguments)} succeeded:\n{result.out}"
        return result.err

    def apply(self, *documents: str | dict[str, Any]) -> str:
        """Apply manifests given as YAML text or as objects."""
        texts = [document if isinstance(document, str) else json.dumps(document) for document in documents]
        # The separator first, so that kubectl takes what follows for YAML, of which JSON is a part.
        return self.kubectl("apply", "-f", "-", stdin="".join(f"---\n{text}\n" for text in texts))

    def get(self, *arguments: str) -> Any:
        """`kubectl get ... -o json`, parsed."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def path(self, template: str, *arguments: str) -> str:
        """`kubectl get ... -o jsonpath=...`."""
        return self.kubectl("get", *arguments, "-o", f"jsonpath={template}")

    def wait(self, seconds: float) -> None:
        """Let the cluster's time pass."""
        self.cluster.wait(seconds)

    def events(self, name: str, *, namespace: str = "default") -> list[tuple[str, str, str]]:
        """(type, reason, message) of the events about an object, the oldest first."""
        found = self.get("events", "-n", namespace, "--field-selector", f"involvedObject.name={name}")
        ordered = sorted(
            found["items"],
            key=lambda e: (e.get("firstTimestamp") or e.get("eventTime") or "", int(e["metadata"]["resourceVersion"])),
        )
        return [(event["type"], event["reason"], event["message"]) for event in ordered]

    def reasons(self, name: str, *, namespace: str = "default") -> list[str]:
        return [reason for _, reason, _ in self.events(name, namespace=namespace)]

    def pods(self, selector: str, *, namespace: str = "default") -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.get("pods", "-n", namespace, "-l", selector)["items"]
        return items

    def columns(self, *arguments: str) -> list[list[str]]:
        """The rows `kubectl get` prints, split at runs of two or more blanks."""
        lines = self.kubectl("get", *arguments).splitlines()
        return [re.split(r"\s{2,}", line.strip()) for line in lines]

    def row(self, *arguments: str) -> dict[str, str]:
        """What `kubectl get` prints about one object, by column."""
        header, *rows = self.kubectl("get", *arguments).splitlines()
        assert len(rows) == 1, rows
        # Columns are as wide as their longest cell: where a title starts, its cell starts.
        starts = [(found.group(), found.start()) for found in re.finditer(r"\S+(?: \S+)*", header)]
        ends = [start for _, start in starts[1:]] + [None]
        return {title: rows[0][start:end].strip() for (title, start), end in zip(starts, ends, strict=True)}

    def printed_status(self, pod: str) -> str:
        """The STATUS that `kubectl get pod` prints."""
        return self.row("pod", pod)["STATUS"]

    def container(self, pod: str, name: str | None = None) -> dict[str, Any]:
        """The status of a pod's container, of its first one by default."""
        status = self.get("pod", pod)["status"]
        rows = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
        if name is None:
            found: dict[str, Any] = status["containerStatuses"][0]
            return found
        return next(row for row in rows if row["name"] == name)

    def condition(self, kind: str, *arguments: str) -> dict[str, Any]:
        """A condition of an object: `condition("Ready", "pod", "web")`."""
        rows = self.get(*arguments)["status"].get("conditions", ())
        found: dict[str, Any] = next((row for row in rows if row["type"] == kind), {})
        return found

    def only_pod(self, selector: str, *, namespace: str = "default") -> str:
        """The name of the one pod that a selector finds."""
        [pod] = self.pods(selector, namespace=namespace)
        name: str = pod["metadata"]["name"]
        return name
