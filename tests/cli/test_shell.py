"""`srearena shell` runs what a person types: streams, programs that need a terminal, suggestions and completions."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from srearena.conductor.serving.console import Console
from srearena.conductor.serving.console_words import kubectl_completions, suggestion
from srearena.conductor.serving.shell_commands import run_line
from tests.cli.terminals import Terminal, started_on_terminal

PROGRAM = """
import os, sys
from srearena.conductor.serving.shell_commands import run_line
from tests.cli.terminals import Terminal, started_on_terminal
status, output = run_line(sys.argv[1], os.environ, print)
print("status", status, "kept", repr(output))
"""


def on_terminal(line: str) -> AbstractContextManager[Terminal]:
    return started_on_terminal("-c", PROGRAM, line)


def test_a_command_has_a_terminal_for_its_keys_and_its_output() -> None:
    line = 'test -t 0 && test -t 1 && printf "name? "; read name; printf "\\033[1mhello %s\\033[0m\\n" "$name"; exit 3'
    with on_terminal(line) as terminal:
        terminal.wait_for("name? ")
        terminal.type("Ada\n")
        terminal.wait_for("\x1b[1mhello Ada")
        terminal.wait_for("status 3")
        terminal.wait_for("kept 'name? Ada\\nhello Ada\\n'")


def test_ctrl_c_ends_a_command_that_follows_and_not_the_console() -> None:
    with on_terminal("echo first; while :; do sleep 0.1; done") as terminal:
        terminal.wait_for("first")
        terminal.type("\x03")
        terminal.wait_for("status -2 kept 'first\\n^C")


def test_lines_are_passed_on_as_they_come(tmp_path: Path) -> None:
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        (tmp_path / line).touch()

    awaited = tmp_path / "one"
    status, output = run_line(f"echo one; until test -e {awaited}; do sleep 0.05; done; echo two", os.environ, say)
    assert (status, output, lines) == (0, "one\ntwo\n", ["one", "two"])


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("statr wrong_id", "start"),
        ("kubctl get pods", "kubectl"),
        ("submt()", "submit"),
        ("describe pods -w", "kubectl describe"),
        ("sh -c true", ""),
        ("./own-script", ""),
        ("", ""),
    ],
)
def test_a_typo_gets_what_was_meant(line: str, meant: str) -> None:
    assert suggestion(line, ("start", "status", "kubectl", "submit(")) == meant


def test_the_console_names_what_was_meant() -> None:
    output: list[str] = []
    console = Console(output.append)
    assert console.handle("strat wrong_id")
    assert output == ["Error: there is no command 'strat': did you mean start?"]


def test_kubectl_completes_kinds_and_names_itself(tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text('#!/bin/sh\nprintf "%s\\tpod\\n" "$KUBECONFIG" "$*"\nprintf ":4\\n"\n')
    program.chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{tmp_path}{os.pathsep}{before}"
    try:
        offered = kubectl_completions("kubectl logs geo-", {**os.environ, "KUBECONFIG": "/episode"})
    finally:
        os.environ["PATH"] = before
    assert offered == ["/episode", "__complete logs geo-"]
    assert kubectl_completions("kubectl ro", None) == ["rollout"]
    assert kubectl_completions("kubectl logs x", None) == []


def test_problems_are_listed_as_a_table() -> None:
    output: list[str] = []
    Console(output.append).handle("list noop_social")
    rows = output[0].splitlines()
    assert rows[0].split() == ["ID", "APPLICATION", "LEVEL", "DIFFICULTY"]
    assert rows[1].split()[0] == "noop_social_network" and "Social Network" in rows[1]
