"""Runs scenarios with the real kubectl and writes down what it says, normalised.

The same code runs on both clusters; they differ in how time passes and in how a machine is reached.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

import yaml

from srearena.go_programs import NO_COLLECTION
from srearena.service.kubernetes import Kubernetes
from tests.parity.normal import normal_events, normal_text
from tests.parity.passing import LONGEST, TYPING, Passing
from tests.parity.scenarios import Scenario, Step
from tests.parity.webhooks import webhook_files
from tests.real_cluster.addons import HELM

POLLS = 120
CHARTS = Path(__file__).parent / "charts"
_LOST = "Unknown stream id"
"""What kubectl says when an answer comes before it has made its own streams, and is lost: a race within kubectl."""
EDITOR = "sed -i s/red/blue/"
"""What `kubectl edit` opens."""


@dataclass(frozen=True, slots=True)
class View:
    """What one command showed."""

    command: str
    exit: int
    output: str
    errors: str = ""


class Unsettled(AssertionError):
    """A scenario waited for something that never came."""


@dataclass(slots=True)
class Terminal:
    """A person at a terminal of one cluster, in a home folder of their own."""

    kubeconfig: Path
    home: Path
    passing: Passing
    machine: Callable[[str, str], None]
    """Does something (stop_kubelet, start_kubelet) to a node."""

    def __post_init__(self) -> None:
        (self.home / "charts").symlink_to(CHARTS)
        (self.home / "hook").mkdir()

    def play(self, scenario: Scenario) -> list[View]:
        """Go through a scenario in a namespace of its own; the views."""
        with Kubernetes(self.kubeconfig) as api:
            return self._play(scenario, api)

    def _play(self, scenario: Scenario, api: Kubernetes) -> list[View]:
        namespace = scenario.name
        for name, text in webhook_files(namespace).items():
            (self.home / "hook" / name).write_text(text)
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        while not (api.list("serviceaccounts", namespace) and api.list("configmaps", namespace)):
            self.passing.pause(1)
        views = []
        try:
            for step in scenario.steps:
                if step.kind == "until":
                    self._await(step, namespace, api)
                elif step.kind == "settle":
                    self.passing.pause(float(step.command))
                elif step.kind == "quiet":
                    self._kubectl(step.command, namespace)
                elif step.kind == "machine":
                    self.machine(*step.command.split())
                else:
                    views.append(self._view(step, namespace))
        finally:
            api.delete("namespaces", namespace)
        return views

    def _view(self, step: Step, namespace: str) -> View:
        if step.kind == "events":
            done = self._kubectl("get events -o json", namespace)
            items = json.loads(done.stdout)["items"]
            chosen = [item for item in items if item["involvedObject"].get("name", "").startswith(step.command)]
            return View(step.title, 0, normal_events(chosen))
        if step.kind == "forward":
            return self._forward(step, namespace)
        if step.kind == "helm":
            helm = find_helm()
            assert helm is not None, "helm is not installed"
            done = self._run([str(helm), f"--namespace={namespace}", *shlex.split(step.command)], None)
        else:
            done = self._kubectl(step.command, namespace, step.stdin)
            if _LOST in done.stderr:
                done = self._kubectl(step.command, namespace, step.stdin)
        return View(step.title, done.returncode, normal_text(done.stdout), normal_text(done.stderr))

    def _forward(self, step: Step, namespace: str) -> View:
        """`port-forward` to a port of this machine, one request through it, and what came back."""
        target, port, path = step.command.split()
        command = ["kubectl", f"--namespace={namespace}", "port-forward", target, f":{port}"]
        with subprocess.Popen(
            command, env=self._environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            announcement = re.search(r"127\.0\.0\.1:(\d+) -> ", process.stdout.readline())
            if announcement is None:
                return View(step.title, process.wait(), "", normal_text(process.stderr.read()))
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{announcement[1]}{path}", timeout=10) as answer:
                    shown = f"{answer.status}\n"
            except (URLError, OSError) as problem:
                shown = f"{getattr(problem, 'code', 'no answer')}\n"
            process.terminate()
            process.wait()
        return View(step.title, 0, shown)

    def _await(self, step: Step, namespace: str, api: Kubernetes) -> None:
        """Wait for what a command says; it is run again only when one of the objects it is about has changed."""
        output, last = "", None
        for _ in range(POLLS):
            state = _versions(step.command, namespace, api)
            if state is not None and state == last:
                self.passing.pause(1 + TYPING)
                continue
            last = state
            done = self._kubectl(step.command, namespace)
            output = done.stdout + done.stderr
            # A jsonpath that does not apply yet makes kubectl print the whole object as an error, and an Endpoints
            # object comes with a warning: neither is the value that is waited for.
            value = (done.stdout if done.returncode == 0 else "") if "jsonpath" in step.command else output
            if re.search(step.pattern, value):
                return
            self.passing.pause(1)
        raise Unsettled(f"{step.command!r} never printed {step.pattern!r} but {output!r}")

    def _kubectl(self, command: str, namespace: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return self._run(["kubectl", f"--namespace={namespace}", *shlex.split(command)], stdin)

    def _run(self, command: list[str], stdin: str | None) -> subprocess.CompletedProcess[str]:
        timeout = next((word for word in command if word.startswith("--timeout=")), "")
        limit = float(timeout.partition("=")[2].removesuffix("s")) if timeout else LONGEST
        paths = [self.home / name for name in (".stdin", ".stdout", ".stderr")]
        paths[0].write_text(stdin or "")
        with paths[0].open() as given, paths[1].open("w") as out, paths[2].open("w") as err:
            environment = self._environment()
            with subprocess.Popen(
                command, env=environment, cwd=self.home, stdin=given, stdout=out, stderr=err, text=True
            ) as process:
                try:
                    self.passing.attend(process, limit)
                finally:
                    process.kill()
        return subprocess.CompletedProcess(command, process.returncode, paths[1].read_text(), paths[2].read_text())

    def _environment(self) -> dict[str, str]:
        return {
            "KUBECONFIG": str(self.kubeconfig),
            "HOME": str(self.home),
            "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
            "KUBE_EDITOR": EDITOR,
            **NO_COLLECTION,
        }


def _versions(command: str, namespace: str, api: Kubernetes) -> list[str] | None:
    """The versions of all objects that `get` may show; None where they do not decide what the command says."""
    words = command.split()
    if words[0] != "get" or {"-n", "-A"} & set(words):
        return None
    scope = namespace if api.resource(words[1]).namespaced else None
    return [obj["metadata"]["resourceVersion"] for obj in api.list(words[1], scope)]


def find_helm() -> Path | None:
    """The helm built for the real cluster, or the one of this machine."""
    found = str(HELM.path) if HELM.path.exists() else shutil.which("helm")
    return Path(found) if found else None


def save(path: Path, version: str, views: list[View]) -> None:
    """Write a recording."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shown = []
    for view in views:
        entry: dict[str, object] = {"command": view.command, "exit": view.exit}
        entry |= {name: text for name, text in (("output", view.output), ("errors", view.errors)) if text}
        shown.append(entry)
    path.write_text(yaml.dump({"version": version, "views": shown}, Dumper=_Dumper, sort_keys=False, width=10_000))


def read(path: Path) -> list[View]:
    """Read a recording."""
    document = yaml.safe_load(path.read_text())
    return [
        View(entry["command"], entry["exit"], entry.get("output", ""), entry.get("errors", ""))
        for entry in document["views"]
    ]


class _Dumper(yaml.SafeDumper):
    """Text of several lines as a block, so that a recording reads as a transcript."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
