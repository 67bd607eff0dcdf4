"""No script can stop the simulation: every loop takes virtual time, everything that grows has an end."""

from __future__ import annotations

import time

import pytest

from tests.containers.machine import Machine

ENDLESS = [
    "while :; do :; done",
    "while true; do echo x; done > /dev/null",
    "while true; do date; done > /dev/null",
    "until false; do x=$((x+1)); done",
    "awk 'BEGIN { while (1) x++ }'",
    "yes > /dev/null",
    "cat /dev/zero > /dev/null",
    "while :; do case a in a) continue;; esac; done",
    "for i in $(seq 1 100000); do :; done; while :; do :; done",
    "yes | while read x; do :; done",
    "f() { while :; do (:); done; }; f",
    "while :; do x=$(echo $x); done",
    "tail -f /etc/passwd",
    "watch true",
]


@pytest.mark.parametrize("script", ENDLESS)
def test_an_endless_script_only_uses_virtual_time(machine: Machine, script: str) -> None:
    container = machine.idle()
    began = time.perf_counter()
    outcome = machine.sh(script, container, patience=5.0)
    assert outcome.status is None
    assert machine.clock.now >= 1_763_000_005.0
    assert time.perf_counter() - began < 20


def test_an_hour_of_a_busy_loop_costs_little(machine: Machine) -> None:
    container = machine.idle()
    began = time.perf_counter()
    machine.sh("while :; do :; done", container, patience=3600.0)
    assert time.perf_counter() - began < 20
    assert container.meter.cpu_seconds() > 3000


def test_a_busy_loop_counts_as_processor_use(machine: Machine) -> None:
    container = machine.idle()
    machine.sh("while :; do :; done", container, patience=10.0)
    assert container.meter.cpu_seconds() == pytest.approx(10.0, rel=0.05)


def test_a_fork_bomb_runs_into_the_limit_of_processes(machine: Machine) -> None:
    container = machine.idle()
    outcome = machine.sh("b() { b | b & }; b; sleep 15", container)
    assert "can't fork: Resource temporarily unavailable" in outcome.err
    assert len(container.pids.processes) <= 1024


def test_recursion_without_end_is_cut(machine: Machine) -> None:
    outcome = machine.sh("f() { f; }; f; echo unreached")
    assert outcome.status == 2
    assert "maximum function nesting level exceeded" in outcome.err


def test_a_script_that_sources_itself_is_cut(machine: Machine) -> None:
    container = machine.idle()
    container.files.write_bytes("/loop.sh", b". /loop.sh\n")
    assert machine.sh(". /loop.sh", container).status == 2


def test_a_variable_cannot_outgrow_the_simulator(machine: Machine) -> None:
    outcome = machine.sh("x=a; while :; do x=$x$x; done")
    assert (outcome.err, outcome.status) == ("sh: out of memory\n", 2)


def test_endless_output_in_a_substitution_is_out_of_memory(machine: Machine) -> None:
    assert machine.sh("x=$(yes)").status == 2


def test_a_writer_waits_for_its_reader(machine: Machine) -> None:
    """The pipe is bounded: only as much is written as somebody reads."""
    outcome = machine.sh("(yes; echo >&2 ended) | (sleep 5; head -1)", patience=6.0)
    assert outcome.out == "y\n"
    assert outcome.status == 0


def test_a_hostile_regular_expression_is_harmless(machine: Machine) -> None:
    began = time.perf_counter()
    text = "a" * 2000
    for pattern in ("(a+)+b", "(a|a)*b", "(a*)*b", "a*a*a*a*a*a*a*b"):
        assert machine.sh(f"echo {text} | grep -E '{pattern}'").status == 1
    assert time.perf_counter() - began < 20


def test_brace_expansion_does_not_explode(machine: Machine) -> None:
    outcome = machine.run(
        machine.idle("debian"), ["bash", "-c", "echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} | wc -w"]
    )
    assert outcome.out == "1024\n"
    outcome = machine.run(machine.idle("debian"), ["bash", "-c", f"echo {'{a,b}' * 19} | wc -w"])
    assert int(outcome.out) <= 10_000
