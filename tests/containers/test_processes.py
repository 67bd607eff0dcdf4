"""Processes: signals, exit statuses, children, and the peculiarities of process 1."""

from __future__ import annotations

from dataclasses import replace
from signal import Signals

import pytest

from srearena.cluster.embedded.machine.containers.container import Container, ContainerConfig
from srearena.cluster.embedded.machine.processes.pids import PidNamespace
from srearena.cluster.embedded.programs.generic import GenericServer
from srearena.cluster.embedded.programs.registry import program_for
from tests.containers.machine import Machine


def test_sleep_as_process_1_ignores_a_polite_request_and_dies_of_the_rude_one(machine: Machine) -> None:
    container = machine.container("busybox", "sleep", "3600")
    container.stop()
    machine.clock.advance(30)
    assert container.running
    container.kill()
    machine.clock.advance(1)
    assert (container.done.value.code, container.done.value.reason) == (137, "Error")


def test_a_shell_around_sleep_is_no_better(machine: Machine) -> None:
    container = machine.container("busybox", "sh", "-c", "echo up; sleep 3600; echo never")
    container.stop()
    machine.clock.advance(30)
    assert container.running


def test_a_trap_makes_a_script_stop_gracefully(machine: Machine) -> None:
    script = "trap 'echo bye; exit 7' TERM; while true; do sleep 1; done"
    container = machine.container("busybox", "sh", "-c", script)
    machine.clock.advance(5)
    container.stop()
    machine.clock.advance(2)
    assert container.done.value.code == 7
    assert container.log.text() == "bye\n"


def test_a_trap_interrupts_wait_at_once_but_a_foreground_command_first_finishes(machine: Machine) -> None:
    waiting = machine.container("busybox", "sh", "-c", "trap 'echo got; exit 0' TERM; sleep 100 & wait")
    busy = machine.container("busybox", "sh", "-c", "trap 'echo got; exit 0' TERM; sleep 100")
    for container in (waiting, busy):
        container.stop()
    machine.clock.advance(1)
    assert waiting.done.is_set
    assert busy.running
    machine.clock.advance(100)
    assert busy.done.value.code == 0


def test_process_1_cannot_be_killed_from_inside(machine: Machine) -> None:
    container = machine.idle()
    assert machine.sh("kill -9 1; kill -TERM 1; sleep 1; echo still", container).out == "still\n"
    assert container.running


@pytest.mark.parametrize(
    ("signal", "status"), [("TERM", 143), ("KILL", 137), ("INT", 130), ("HUP", 129), ("USR1", 138)]
)
def test_an_ordinary_process_dies_of_signals_with_128_plus_n(machine: Machine, signal: str, status: int) -> None:
    outcome = machine.sh(f"sleep 100 & kill -{signal} $!; wait $! 2>/dev/null; echo $?")
    assert outcome.out == f"{status}\n"


def test_a_stopped_process_does_nothing_until_it_continues(machine: Machine) -> None:
    container = machine.idle()
    process = container.exec(["sh", "-c", "while :; do echo x >> /tmp/ticks; sleep 1; done"])
    machine.clock.advance(3.5)
    process.raise_signal(Signals.SIGSTOP)
    before = container.files.stat("/tmp/ticks").size
    machine.clock.advance(10)
    assert container.files.stat("/tmp/ticks").size == before
    assert "T" in machine.sh(f"ps -o pid,stat | grep '^ *{process.pid} '", container).out
    process.raise_signal(Signals.SIGCONT)
    machine.clock.advance(3)
    assert container.files.stat("/tmp/ticks").size > before


def test_the_end_of_process_1_takes_everybody_along(machine: Machine) -> None:
    container = machine.container("busybox", "sleep", "5")
    other = container.exec(["sleep", "1000"])
    machine.clock.advance(6)
    assert container.done.value.code == 0
    assert other.done.value == 137


def test_orphans_become_children_of_process_1_which_may_leave_them_as_zombies(machine: Machine) -> None:
    container = machine.idle()
    machine.sh("sh -c 'sleep 2 & sleep 3 &'", container)
    machine.clock.advance(10)
    assert machine.sh("ps -o pid,ppid,stat,comm | grep ' 1 Z'", container).out.count("sleep") == 2
    shell = machine.container("busybox", "sh", "-c", "while :; do sleep 1; done")
    machine.sh("sh -c 'sleep 2 &'", shell)
    machine.clock.advance(10)
    assert " Z" not in machine.sh("ps -o pid,ppid,stat,comm", shell).out


def test_containers_may_share_their_process_numbers(machine: Machine) -> None:
    pids = PidNamespace()
    pause = Container(
        ContainerConfig("sandbox", "registry.k8s.io/pause:3.10"), machine, program=program_for("pause"), pids=pids
    )
    pause.start()
    app = Container(
        ContainerConfig("app", "busybox", command=["sleep", "600"]), machine, program=program_for("busybox"), pids=pids
    )
    app.start()
    machine.clock.advance(0.1)
    assert app.main is not None and app.main.pid == 2
    assert "/pause" in machine.sh("ps", app).out
    app.stop()
    machine.clock.advance(1)
    assert app.done.value.code == 143
    assert pause.running


def test_too_many_open_files(machine: Machine) -> None:
    outcome = machine.sh("ulimit -n 5; exec 3</etc/passwd; exec 4</etc/passwd; cat /etc/hostname")
    assert (
        outcome.err == "cat: can't open '/etc/hostname': Too many open files\n" or "Too many open files" in outcome.err
    )


def test_a_broken_pipe_ends_the_writer(machine: Machine) -> None:
    outcome = machine.run(
        machine.idle("debian"),
        ["bash", "-c", "yes | head -1; echo ${PIPESTATUS:-none}; set -o pipefail; yes | head -1; echo $?"],
    )
    assert outcome.out.splitlines()[-1] == "141"


def test_exec_replaces_the_process(machine: Machine) -> None:
    container = machine.container("busybox", "sh", "-c", "exec sleep 30")
    assert machine.sh("cat /proc/1/cmdline | tr '\\0' ' '", container).out == "sleep 30 "


def test_the_last_command_of_a_command_string_replaces_the_shell(machine: Machine) -> None:
    container = machine.container("debian", "sh", "-c", "true; sleep 30")
    assert container.main is not None
    assert container.main.argv == ["sleep", "30"]


def test_environment_and_identity_are_inherited(machine: Machine) -> None:
    container = machine.idle(env={"GREETING": "hello"}, uid=1234, gid=5678)
    outcome = machine.sh(
        "env | grep GREETING; id -u; id -g; echo $HOME; cat /proc/self/environ | tr '\\0' '\\n' | grep GREE", container
    )
    assert outcome.out == "GREETING=hello\n1234\n5678\n/\nGREETING=hello\n"


def test_a_program_that_stumbles_over_a_bug_dies_alone(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: object, process: object) -> int:
        raise KeyError("bug")

    monkeypatch.setattr(GenericServer, "run", broken)
    monkeypatch.setattr("srearena.cluster.embedded.machine.processes.process._log.exception", lambda *args: None)
    container = machine.container("acme/unknown")
    machine.clock.advance(1)
    assert container.done.value.code == 139


def test_the_cgroup_says_what_its_memory_is(machine: Machine) -> None:
    container = machine.idle("nginx:1.27.2", memory_limit=256 * 1024**2)
    rows = machine.sh("cat /sys/fs/cgroup/memory.stat", container).out.splitlines()
    stat = {name: int(value) for name, _, value in (row.partition(" ") for row in rows)}
    current = int(machine.sh("cat /sys/fs/cgroup/memory.current", container).out)
    assert stat["anon"] + stat["file"] + stat["kernel"] == pytest.approx(current, abs=2e6), "the shell came and went"
    assert stat["active_file"] + stat["inactive_file"] == stat["file"]
    assert "oom_kill 0" in machine.sh("cat /sys/fs/cgroup/memory.events", container).out
    assert machine.sh("cat /sys/fs/cgroup/cpu.pressure", container).out.startswith("some avg10=0.00")


def test_proc_counts_segments_and_sockets(machine: Machine) -> None:
    container = machine.idle("busybox")
    container.namespace.carried.add(1000, 11, 2000, 22)
    container.namespace.carried.lost_packets = 3.0
    assert "Tcp: 1 200 120000 -1 0 11 22 3 0" in machine.sh("cat /proc/net/snmp", container).out
    assert "TCP: inuse 0" in machine.sh("cat /proc/net/sockstat", container).out


def test_memory_and_load_are_those_of_the_node(machine: Machine) -> None:
    machine.kernel = replace(machine.kernel, survey=lambda: (10 * 1024**3, 3.5))
    container = machine.idle("busybox")
    assert f"MemAvailable:{6 * 1024**2:>11} kB" in machine.sh("cat /proc/meminfo", container).out
    assert machine.sh("cat /proc/loadavg", container).out.startswith("3.50 ")


def test_the_program_of_a_process_is_a_file_whatever_it_is_called(machine: Machine) -> None:
    container = machine.container("debian", "sleep", "3600")
    copied = "cp $(readlink -f $(which bash)) /tmp/sleep; /tmp/sleep -c 'readlink /proc/$$/exe; true'"
    assert machine.sh(copied, container).out == "/tmp/sleep\n"
    program = machine.sh("readlink /proc/1/exe", container).out.strip()
    assert program.endswith("/bin/sleep")
    same = "[ /proc/1/exe -ef {} ] && echo same; true"
    assert machine.sh(same.format(program), container).out == "same\n"
    assert machine.sh(same.format("/tmp/sleep"), container).out == ""
    machine.sh(f"mv /tmp/sleep {program}", container)
    assert machine.sh("readlink /proc/1/exe", container).out == f"{program} (deleted)\n"
    assert machine.sh(same.format(program), container).out == ""
