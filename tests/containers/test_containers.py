"""Containers: how they start, what they use, what they leave behind."""

from __future__ import annotations

import tracemalloc

import pytest

from srearena.cluster.embedded.machine.containers.container import Container, ContainerConfig, CreateError, StartError
from srearena.cluster.embedded.machine.containers.errors import ExecFailure
from srearena.cluster.embedded.machine.containers.log import ContainerLog
from srearena.cluster.embedded.machine.files.filesystem import Mount, Volume
from srearena.cluster.embedded.machine.files.inodes import Directory, File
from srearena.cluster.embedded.machine.images.image_names import ImageReference
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program_for
from tests.containers.machine import Machine

START = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: error during container init: "
)
MEBI = 1024 * 1024


# --- starting --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        (["foo"], 'exec: "foo": executable file not found in $PATH'),
        (["/foo"], 'exec: "/foo": stat /foo: no such file or directory'),
        (["/etc/passwd"], 'exec: "/etc/passwd": permission denied'),
        (["/etc"], 'exec: "/etc": is a directory'),
        (["/etc/passwd/x"], 'exec: "/etc/passwd/x": stat /etc/passwd/x: not a directory'),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_in_the_words_of_runc(
    machine: Machine, command: list[str], cause: str
) -> None:
    with pytest.raises(StartError) as failure:
        machine.container("busybox", *command)
    assert failure.value.message == START + cause


def test_an_image_without_a_shell_cannot_run_one(machine: Machine) -> None:
    with pytest.raises(StartError, match='exec: "sh": executable file not found'):
        machine.container("traefik/whoami", "sh", "-c", "true")
    container = machine.container("registry.k8s.io/pause:3.10")
    with pytest.raises(ExecFailure) as failure:
        container.exec(["sh"])
    assert failure.value.message.startswith("failed to exec in container: failed to start exec ")
    assert failure.value.message.endswith(
        "OCI runtime exec failed: exec failed: unable to start container process: "
        'exec: "sh": executable file not found in $PATH'
    )


def test_a_working_directory_is_made_where_it_is_missing(machine: Machine) -> None:
    container = machine.container("busybox", "pwd", working_dir="/srv/new/place", read_only_root=True)
    machine.clock.advance(1)
    assert container.log.text() == "/srv/new/place\n"


def test_a_working_directory_that_is_a_file_or_forbidden_is_refused(machine: Machine) -> None:
    with pytest.raises(StartError, match=r"mkdir /etc/passwd: (file exists|not a directory)"):
        machine.container("busybox", "pwd", working_dir="/etc/passwd")
    with pytest.raises(StartError, match=r'chdir to cwd \("/root"\) set in config.json failed: permission denied'):
        machine.container("busybox", "pwd", working_dir="/root", uid=1000)


def test_nothing_to_run_is_an_error_of_creation(machine: Machine) -> None:
    class Empty(Program):
        base = "scratch"

    with pytest.raises(CreateError, match="no command specified"):
        Container(ContainerConfig("app", "empty"), machine, program=Empty(ImageReference.parse("empty")))


def test_a_script_without_its_interpreter_starts_and_fails_in_the_log(machine: Machine) -> None:
    scripts = Volume(Directory(entries={"run": File(b"#!/bin/missing\n", 0o755), "plain": File(b"echo\n", 0o755)}))
    failing = machine.container("busybox", "/s/run", mounts=[Mount("/s", scripts)])
    unformatted = machine.container("busybox", "/s/plain", mounts=[Mount("/s", scripts)])
    machine.clock.advance(1)
    assert (failing.done.value.code, failing.log.text()) == (255, "exec /s/run: no such file or directory\n")
    assert (unformatted.done.value.code, unformatted.log.text()) == (255, "exec /s/plain: exec format error\n")


@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        (None, None, ["/docker-entrypoint.sh", "nginx", "-g", "daemon off;"]),
        (None, ["nginx", "-t"], ["/docker-entrypoint.sh", "nginx", "-t"]),
        (["sleep"], None, ["sleep"]),
        (["sleep"], ["5"], ["sleep", "5"]),
    ],
)
def test_command_and_args_override_entrypoint_and_cmd_as_in_docker(
    machine: Machine, command: list[str] | None, args: list[str] | None, expected: list[str]
) -> None:
    config = ContainerConfig("app", "nginx", command=command, args=args)
    container = Container(config, machine, program=program_for("nginx"))
    assert container.argv == expected


def test_the_environment_has_the_image_the_pod_and_a_home(machine: Machine) -> None:
    container = machine.container("busybox", "env", env={"A": "1", "PATH": "/bin"})
    machine.clock.advance(1)
    assert sorted(container.log.text().split()) == ["A=1", "HOME=/root", "HOSTNAME=web-0", "PATH=/bin"]


def test_the_image_user_is_used_unless_the_pod_says_otherwise(machine: Machine) -> None:
    assert machine.sh("id", machine.container("nginxinc/nginx-unprivileged", "sleep", "9")).out.startswith(
        "uid=101(nginx)"
    )
    assert machine.sh("id -u", machine.container("nginxinc/nginx-unprivileged", "sleep", "9", uid=7)).out == "7\n"


# --- resources -------------------------------------------------------------------------------------------------


def test_asking_for_more_memory_than_the_limit_is_deadly(machine: Machine) -> None:
    args = ["stress", "--vm", "1", "--vm-bytes", "250M", "--vm-hang", "1"]
    container = machine.container("polinux/stress", *args, memory_limit=100 * MEBI)
    machine.clock.advance(5)
    done = container.done.value
    assert (done.code, done.reason, done.oom_killed) == (137, "OOMKilled", True)


def test_a_tool_that_waits_for_the_end_of_an_endless_line_is_out_of_memory(machine: Machine) -> None:
    container = machine.container("busybox", "tail", "/dev/zero", memory_limit=16 * MEBI)
    machine.clock.advance(5)
    assert (container.done.value.code, container.done.value.reason) == (137, "OOMKilled")


def test_a_tool_that_shows_the_end_of_a_long_file_holds_only_the_end(machine: Machine) -> None:
    container = machine.container("busybox", "sh", "-c", "seq 1 400000 | tail -n 2", memory_limit=3 * MEBI)
    machine.clock.advance(60)
    assert container.log.text() == "399999\n400000\n"


def test_what_fits_into_the_limit_runs_on(machine: Machine) -> None:
    args = ["stress", "--vm", "1", "--vm-bytes", "150M", "--vm-hang", "1"]
    container = machine.container("polinux/stress", *args, memory_limit=200 * MEBI)
    machine.clock.advance(60)
    assert container.running
    assert 150 * MEBI < container.meter.working_set < 160 * MEBI


def test_without_group_kill_only_the_greedy_process_dies(machine: Machine) -> None:
    args = ["stress", "--vm", "1", "--vm-bytes", "250M"]
    container = machine.container("polinux/stress", *args, memory_limit=100 * MEBI, kill_all_on_oom=False)
    machine.clock.advance(5)
    assert container.done.value.code == 1
    assert "got signal 9" in container.log.text()


def test_memory_is_given_back_when_a_process_ends(machine: Machine) -> None:
    container = machine.idle("polinux/stress")
    before = container.meter.working_set
    machine.run(container, ["stress", "--vm", "2", "--vm-bytes", "50M", "--timeout", "5"])
    assert container.meter.peak_memory > 100 * MEBI
    assert container.meter.working_set == before


def test_a_busy_program_is_throttled_to_its_limit(machine: Machine) -> None:
    container = machine.container("polinux/stress", "stress", "--cpu", "2", cpu_limit=0.5)
    start = container.meter.cpu_seconds()
    machine.clock.advance(60)
    used = container.meter.cpu_seconds() - start
    assert used == pytest.approx(30, rel=0.02)
    assert container.meter.nr_throttled == pytest.approx(600, rel=0.02)
    assert container.meter.throttled_seconds > 40


def test_a_throttled_shell_takes_longer_for_the_same_work(machine: Machine) -> None:
    script = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done"
    took = {}
    for limit in (None, 0.1):
        container = machine.idle(cpu_limit=limit)
        before = machine.clock.now
        machine.sh(script, container)
        took[limit] = machine.clock.now - before
    assert took[0.1] > 5 * took[None]
    assert took[None] < 2


def test_limits_and_use_can_be_read_in_the_container(machine: Machine) -> None:
    container = machine.idle(cpu_limit=0.25, memory_limit=64 * MEBI)
    assert (
        machine.sh("cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.max", container).out
        == f"25000 100000\n{64 * MEBI}\n"
    )
    assert int(machine.sh("cat /sys/fs/cgroup/memory.current", container).out) > 0


# --- logs ------------------------------------------------------------------------------------------------------


def test_output_becomes_log_lines_with_their_stream_and_time(machine: Machine) -> None:
    container = machine.container("busybox", "sh", "-c", "echo one; sleep 2; echo two >&2; printf unfinished")
    machine.clock.advance(5)
    lines = container.log.lines()
    assert [(line.stream, line.text) for line in lines] == [
        ("stdout", b"one"),
        ("stderr", b"two"),
        ("stdout", b"unfinished"),
    ]
    assert lines[1].time - lines[0].time == pytest.approx(2, abs=0.1)


def test_the_log_rotates_and_goes_on_counting(machine: Machine) -> None:
    log = ContainerLog(machine.clock, limit=1000)
    for number in range(200):
        log.write("stdout", f"line {number:04d}\n".encode())
    assert log.end == 200
    assert log.lines()[-1].text == b"line 0199"
    assert log.dropped > 0
    assert log.size <= 1020
    assert log.lines(log.end - 1)[0].text == b"line 0199"


def test_long_lines_are_cut_and_marked(machine: Machine) -> None:
    log = ContainerLog(machine.clock)
    log.write("stdout", b"x" * 40_000 + b"\n")
    assert [(len(line.text), line.partial) for line in log.lines()] == [(16384, True), (16384, True), (7232, False)]
    assert log.text() == "x" * 40_000 + "\n"


def test_whoever_attaches_gets_the_bytes_from_then_on(machine: Machine) -> None:
    container = machine.container("busybox", "sh", "-c", "echo early; read x; echo got $x", stdin=True)
    seen: list[tuple[str, bytes]] = []
    detach = container.log.attach(lambda stream, data: seen.append((stream, data)))
    assert container.stdin is not None
    container.stdin.write_now(b"input\n")
    machine.clock.advance(1)
    detach()
    assert seen == [("stdout", b"got input\n")]


# --- what it costs ---------------------------------------------------------------------------------------------


def test_a_thousand_idle_containers_cost_a_few_kilobytes_each(machine: Machine) -> None:
    def start(number: int) -> Container:
        container = Container(
            ContainerConfig(f"c{number}", "nginx"), Machine(number, machine.clock), program=program_for("nginx")
        )
        container.start()
        return container

    first = start(0)
    machine.clock.advance(1)
    tracemalloc.start()
    containers = [start(number) for number in range(1, 201)]
    machine.clock.advance(60)
    used = tracemalloc.get_traced_memory()[0] / len(containers)
    tracemalloc.stop()
    assert all(container.running for container in (first, *containers))
    assert used < 30_000
