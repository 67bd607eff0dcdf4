"""Byte streams: first in, first out, never more than their capacity, and an end for every writer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.files.streams import BytesFile, Capture, OpenFile, Pipe
from srearena.cluster.embedded.machine.processes.terminal import Terminal
from tests.containers.machine import Machine


async def pour(pipe: Pipe, chunks: list[bytes]) -> None:
    for chunk in chunks:
        await pipe.write(chunk)
        assert pipe.size <= pipe.capacity
    pipe.close_writer()


async def drink(clock: Clock, pipe: Pipe, sizes: list[int], into: list[bytes]) -> None:
    index = 0
    while data := await pipe.read(sizes[index % len(sizes)]):
        into.append(data)
        index += 1
        await clock.sleep(0.1 * (index % 3))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.binary(max_size=400), max_size=20),
    st.lists(st.integers(1, 300), min_size=1, max_size=5),
    st.integers(1, 256),
)
def test_bytes_arrive_in_order_through_a_small_pipe(chunks: list[bytes], sizes: list[int], capacity: int) -> None:
    clock = Clock(0.0)
    pipe = Pipe(clock, capacity)
    received: list[bytes] = []
    clock.spawn(pour(pipe, chunks))
    reader = clock.spawn(drink(clock, pipe, sizes, received))
    clock.advance(10_000)
    assert reader.done.is_set
    assert b"".join(received) == b"".join(chunks)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=50), max_size=20))
def test_lines_come_out_one_at_a_time(chunks: list[bytes]) -> None:
    clock = Clock(0.0)
    pipe = Pipe(clock)
    reader, writer = pipe.ends()
    whole = b"".join(chunks)
    lines: list[bytes] = []

    async def write() -> None:
        for chunk in chunks:
            await writer.write(chunk)
            await clock.sleep(1)
        writer.release()

    async def read(file: OpenFile) -> None:
        while line := await file.read_line():
            lines.append(line)

    clock.spawn(write())
    clock.spawn(read(reader))
    clock.advance(100)
    assert (
        lines == whole.splitlines(keepends=True)
        if b"\r" not in whole and b"\x0b" not in whole
        else b"".join(lines) == whole
    )
    again: list[bytes] = []

    async def read_fixed() -> None:
        file = BytesFile(whole)
        while line := await file.read_line():
            again.append(line)

    clock.spawn(read_fixed())
    clock.advance(1)
    assert again == lines


def test_nobody_outside_ever_waits_on_a_pipe() -> None:
    clock = Clock(0.0)
    pipe = Pipe(clock, 4)
    seen: list[bytes | None] = []
    pipe.watch(lambda: seen.append(pipe.read_now(10)))
    assert pipe.write_now(b"abcdef") == 4
    clock.advance(0.1)
    assert b"abcd" in seen
    pipe.close_writer()
    clock.advance(0.1)
    assert seen[-1] == b""
    with pytest.raises(BrokenPipeError):
        pipe.write_now(b"x")


def test_a_pipe_ends_when_its_last_writer_closes() -> None:
    clock = Clock(0.0)
    reader, writer = Pipe(clock).ends()
    second = writer.retain()
    task = clock.spawn(reader.read())
    writer.release()
    clock.advance(1)
    assert not task.done.is_set
    second.release()
    clock.advance(1)
    assert task.done.value == b""


def test_a_capture_keeps_the_beginning() -> None:
    clock = Clock(0.0)
    capture = Capture(limit=5)
    clock.spawn(capture.write(b"1234567"))
    clock.advance(1)
    assert capture.text == "12345"


# --- terminals -------------------------------------------------------------------------------------------------


class Screen:
    """A person at a terminal of a container."""

    def __init__(self, machine: Machine, *argv: str, image: str = "alpine") -> None:
        self.machine = machine
        self.container = machine.idle(image)
        self.terminal = Terminal(machine.clock)
        self.process = self.container.exec(list(argv) or ["sh"], tty=self.terminal)
        machine.clock.advance(0.1)

    def type(self, text: str, seconds: float = 1.0) -> str:
        self.terminal.feed(text.encode())
        self.machine.clock.advance(seconds)
        return self.shown()

    def shown(self) -> str:
        return (self.terminal.output.read_now(1 << 20) or b"").decode()


def test_an_interactive_shell_prompts_echoes_and_answers(machine: Machine) -> None:
    screen = Screen(machine)
    assert screen.shown() == "/ # "
    assert screen.type("echo hi\r") == "echo hi\r\nhi\r\n/ # "
    assert screen.type("cd /etc\r") == "cd /etc\r\n/etc # "
    assert screen.type("nope\r") == "nope\r\nsh: nope: not found\r\n/etc # "
    screen.type("exit 3\r")
    assert screen.process.done.value == 3


def test_backspace_and_line_kill_edit_the_line(machine: Machine) -> None:
    screen = Screen(machine)
    screen.shown()
    assert screen.type("echo abX\x7fc\r").endswith("\r\nabc\r\n/ # ")
    assert screen.type("rm -rf /\x15echo safe\r").endswith("\r\nsafe\r\n/ # ")


def test_control_d_on_an_empty_line_ends_the_shell(machine: Machine) -> None:
    screen = Screen(machine)
    screen.type("false\r")
    screen.type("\x04")
    assert screen.process.done.value == 1


def test_control_c_interrupts_what_runs_and_brings_back_the_prompt(machine: Machine) -> None:
    screen = Screen(machine)
    screen.shown()
    screen.type("while true; do sleep 1; echo tick; done\r", 3.5)
    assert screen.type("\x03").endswith("/ # ")
    assert screen.type("echo alive $?\r").endswith("alive 130\r\n/ # ")
    assert screen.type("half a command\x03").endswith("^C\r\n/ # ")
    assert not screen.process.done.is_set


def test_a_command_over_several_lines_is_prompted_for(machine: Machine) -> None:
    screen = Screen(machine)
    screen.shown()
    assert screen.type("for i in 1 2\r").endswith("> ")
    screen.type("do echo n$i\r")
    assert screen.type("done\r").endswith("n1\r\nn2\r\n/ # ")


def test_a_terminal_belongs_to_the_program_in_front(machine: Machine) -> None:
    screen = Screen(machine)
    screen.shown()
    screen.type("cat\r")
    assert screen.type("echoed\r") == "echoed\r\nechoed\r\n"
    assert screen.type("\x04").endswith("/ # ")
    assert screen.type("test -t 0 && echo tty; tty\r").endswith("tty\r\n/dev/pts/0\r\n/ # ")


def test_hanging_up_ends_the_session(machine: Machine) -> None:
    screen = Screen(machine, "sh", "-c", "sleep 1000")
    screen.terminal.hang_up()
    machine.clock.advance(1)
    assert screen.process.done.value == 129


def test_bash_has_its_own_prompt(machine: Machine) -> None:
    screen = Screen(machine, "bash", image="debian")
    assert screen.shown() == "root@web-0:/# "
    assert "bash: nope: command not found" in screen.type("nope\r")
