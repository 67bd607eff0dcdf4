"""Docker as the sandbox: its command lines, runs with a substitute for it, and with the real one if available."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.zero.test_sandbox import web
from tests.zero.watching import comes, goes
from zero import docker, gateway
from zero.docker import Container
from zero.relay import Endpoint, run_relay

GOOD = '{"entities": [], "propagations": [], "alerts_explained": []}'

# Runs the command after the image on this machine, with the named variables only, and logs its arguments.
STAND_IN = """#!{python}
import json, os, subprocess, sys
words = sys.argv[1:]
with open({account!r}, "a") as account:
    account.write(json.dumps(words) + "\\n")
if words[0] == "run":
    names = [words[i + 1] for i, word in enumerate(words) if word == "--env"]
    command = words[words.index("debian:stable-slim") + 1:]
    # Nothing is mounted here: where the relay's sockets really are.
    mount = next(word for word in words if word.endswith(",destination=/run/zero,readonly"))
    sockets = mount.split(",")[1].removeprefix("source=")
    command = [word.replace("/run/zero", sockets) for word in command]
    sys.exit(subprocess.run(command, env={{name: os.environ[name] for name in names}}).returncode)
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called docker, first on the path; returns the file with its logged commands."""
    place, account = tmp_path / "bin", tmp_path / "account.jsonl"
    place.mkdir()
    (place / "docker").write_text(STAND_IN.format(python=sys.executable, account=str(account)))
    (place / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    monkeypatch.delenv(docker.IMAGE_VARIABLE, raising=False)
    return account


def mounts(command: list[str]) -> dict[str, dict[str, str]]:
    """By destination: the fields of every --mount."""
    found = {}
    for flag, value in pairwise(command):
        if flag == "--mount":
            fields = dict(field.partition("=")[::2] for field in next(csv.reader([value])))
            found[fields["destination"]] = fields
    return found


def test_a_container_has_forwards_and_no_network_and_shows_what_the_sandbox_shows(tmp_path: Path) -> None:
    workspace = tmp_path / 'work, of "two" words'
    traces, private = workspace / "traces", workspace / ".zero"
    for place in (traces, private, tmp_path / "tools"):
        place.mkdir(parents=True)
    with run_relay([Endpoint("127.0.0.1", 8123)]) as relay:
        container = Container(workspace, [tmp_path / "tools"], [traces], [private], relay, seconds=90.5)
        command = container.command(["agent", "go on"], {"SECRET_KEY": "4711", "HOME": "/h"})
        directory = str(relay.directory)
    assert command[:3] == ["docker", "run", "--rm"]
    assert command[command.index("--network") + 1] == "none"
    assert command[command.index("--cap-drop") + 1] == "ALL"
    assert command[command.index("--user") + 1] == f"{os.getuid()}:{os.getgid()}"
    assert "--read-only" in command and "--privileged" not in command
    assert "4711" not in " ".join(command), "secrets are passed by name"
    assert [command[i + 1] for i, word in enumerate(command) if word == "--env"] == ["HOME", "SECRET_KEY"]
    shown = mounts(command)
    assert "readonly" not in shown[str(workspace)]
    for place in (str(traces), "/usr", str(tmp_path / "tools"), "/run/zero"):
        assert "readonly" in shown[place], place
    assert shown["/run/zero"]["source"] == directory
    assert shown[str(private)]["type"] == "tmpfs"
    assert not {"/", "/root", "/home", "/var/run/docker.sock", str(tmp_path)} & set(shown)
    inside = command[command.index(docker.image()) + 1 :]
    assert inside[:3] == ["timeout", "--kill-after=5", "91"]
    assert inside[: inside.index("--")][-2:] == ["life=/run/zero/life", "8123=/run/zero/8123"]
    assert inside[-2:] == ["agent", "go on"]


def test_a_run_in_a_container(
    stand_in: Path, zero: Callable[..., Any], agent: Callable[[str], str], workspace: Path, snapshot: Path
) -> None:
    command = agent(
        f"""
        pathlib.Path("seen.json").write_text(json.dumps([sorted(os.environ), sys.argv[3]]))
        pathlib.Path(sys.argv[2]).write_text('{GOOD}')
        """
    )
    prompt = workspace.parent / "prompt.md"
    prompt.write_text("---\nmcp_servers: []\n---\nLook at $SNAPSHOT_DIRS.\n")
    done = zero(
        *("--cli", "command", "--command", command, "--sandbox", "docker", "-r", str(snapshot)),
        *("--prompt-file", str(prompt), "--timeout", "60"),
        after=("exec",),
        NOT_FOR_AGENTS="4711",
    )
    assert done.code == 0, done.stderr
    names, _ = json.loads((workspace / "seen.json").read_text())
    assert "HOME" in names and "NOT_FOR_AGENTS" not in names and "DOCKER_CONFIG" not in names
    assert json.loads((workspace / "traces" / "run.json").read_text())["sandbox"] == "docker"
    copy = workspace / "evidence" / "Scenario-7"
    assert str(copy) in (workspace / "AGENTS.md").read_text()
    assert (copy / "otel_logs_raw.tsv").is_file() and not (copy / "ground_truth.yaml").exists()
    commands = [json.loads(line) for line in stand_in.read_text().splitlines()]
    (ran,) = (words for words in commands if words[0] == "run")
    assert "readonly" in mounts(ran)[str(workspace / "evidence")]
    assert commands[-1] == ["rm", "--force", "--volumes", ran[ran.index("--name") + 1]]


def test_a_container_does_not_outlive_a_killed_zero(
    stand_in: Path, agent: Callable[[str], str], workspace: Path
) -> None:
    slow = agent("import time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(600)")
    options = ("--cli", "command", "--command", slow, "--sandbox", "docker", "--timeout", "500")
    prompt = workspace.parent / "prompt.md"
    prompt.write_text("---\nmcp_servers: []\n---\nLook.\n")
    command = [sys.executable, "-m", "zero", "-w", str(workspace), *options, "--prompt-file", str(prompt), "--", "exec"]
    run = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    comes(workspace / "pid")
    run.kill()
    run.wait(30)
    goes(int((workspace / "pid").read_text() or "0"))


def test_a_container_that_starts_too_late_exits_at_once(tmp_path: Path) -> None:
    with run_relay([]) as relay:
        lifeline = relay.lifeline.replace("/run/zero", str(relay.directory))
    command = gateway.wrap([lifeline], [sys.executable, "-c", "import time; time.sleep(600)"])
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 137
    assert done.stderr == "the process that started this container is gone\n"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("echo 'Cannot connect to the Docker daemon' >&2; exit 1", "Cannot connect to the Docker daemon"),
        ('test "$1" = version', "docker pull debian:stable-slim"),
    ],
)
def test_the_reason_for_no_container_is_reported(
    stand_in: Path, zero: Callable[..., Any], workspace: Path, body: str, says: str
) -> None:
    (stand_in.parent / "bin" / "docker").write_text(f"#!/bin/sh\n{body}\n")
    done = zero("--cli", "command", "--command", "true", "--sandbox", "docker", after=("exec",))
    assert done.code == 1
    assert says in done.stderr and len(done.stderr.splitlines()) == 1


def test_the_real_docker(
    zero: Callable[..., Any], agent: Callable[[str], str], workspace: Path, snapshot: Path, tmp_path: Path
) -> None:
    reason = docker.unavailable_reason()
    if reason:
        pytest.skip(reason)
    command = agent(
        f"""
        import socket, urllib.request
        def attempt(action):
            try:
                return action()
            except Exception as problem:
                return type(problem).__name__
        def fetch(port):
            return urllib.request.urlopen(f"http://127.0.0.1:{{port}}/", timeout=5).read().decode()
        allowed, refused = sys.argv[3].split()
        found = {{
            "key": [str(p) for p in pathlib.Path("/").glob("*/**/ground_truth*") if "/proc/" not in str(p)],
            "evidence": attempt(lambda: pathlib.Path("evidence/Scenario-7/otel_logs_raw.tsv").write_text("x")),
            "record": attempt(lambda: pathlib.Path("traces/x").write_text("x")),
            "allowed": attempt(lambda: fetch(allowed)),
            "refused": attempt(lambda: fetch(refused)),
            "outside": attempt(lambda: socket.create_connection(("192.0.2.1", 80), 3)),
        }}
        pathlib.Path("found.json").write_text(json.dumps(found))
        pathlib.Path(sys.argv[2]).write_text('{GOOD}')
        """
    )
    with web("hello") as allowed, web("never") as refused:
        done = zero(
            *("--cli", "command", "--command", command, "--sandbox", "docker", "-r", str(snapshot)),
            *("--expose", str(tmp_path / "agents"), "--allow-endpoint", f"127.0.0.1:{allowed}"),
            after=("exec", f"{allowed} {refused}"),
        )
    assert done.code == 0, done.stderr + (workspace / "traces" / "stdout.log").read_text()
    assert json.loads((workspace / "found.json").read_text()) == {
        "key": [],
        "evidence": "OSError",
        "record": "OSError",
        "allowed": "hello",
        "refused": "URLError",
        "outside": "OSError",
    }
