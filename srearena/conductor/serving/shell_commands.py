"""Runs the lines of a person at the console in their shell, and keeps what was printed for the transcript.

On a terminal a command gets a terminal of its own, so that `kubectl get pods -w`, `logs -f`, `exec -it` and editors
work as everywhere else; otherwise lines are passed on as they come.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import selectors
import signal
import subprocess
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

_KEPT = 100_000
"""Bytes of the output of one command in the transcript: the newest. Chosen; more than ten screens."""
_SHELL = "/bin/sh"
_OWN_TERMINAL = 'exec 0<>"$1" 1>&0 2>&0; exec "$2" -c "$3"'
"""The leader of a session that opens a terminal is controlled by it, as Ctrl-C requires."""
_POLL = 0.05
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\r")
"""Colours, movements of the cursor and titles of windows."""


def run_line(line: str, environment: Mapping[str, str], say: Callable[[str], None]) -> tuple[int, str]:
    """Run one line; returns its exit status and its output."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        return _on_terminal(line, environment, sys.stdin.fileno(), sys.stdout.fileno())
    return _in_pipe(line, environment, say)


def _in_pipe(line: str, environment: Mapping[str, str], say: Callable[[str], None]) -> tuple[int, str]:
    output = bytearray()
    with subprocess.Popen(
        [_SHELL, "-c", line],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            for printed in process.stdout:
                _keep(output, printed)
                say(printed.decode("utf-8", "replace").rstrip("\n"))
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
    return process.returncode, output.decode("utf-8", "replace")


def _on_terminal(line: str, environment: Mapping[str, str], keyboard: int, screen: int) -> tuple[int, str]:
    output = bytearray()
    controller, terminal = pty.openpty()
    try:
        words = [_SHELL, "-c", _OWN_TERMINAL, "sh", os.ttyname(terminal), _SHELL, line]
        with _keys_passed_on(keyboard), _size_followed(screen, controller):
            process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
            with selectors.DefaultSelector() as selector:
                selector.register(controller, selectors.EVENT_READ)
                selector.register(keyboard, selectors.EVENT_READ)
                ended = False
                while True:
                    ready = [key.fd for key, _ in selector.select(_POLL)]
                    if keyboard in ready:
                        typed = os.read(keyboard, 4096)
                        if not typed:
                            selector.unregister(keyboard)
                        os.write(controller, typed)
                    if controller in ready:
                        printed = os.read(controller, 65536)
                        _keep(output, printed)
                        os.write(screen, printed)
                    elif ended:
                        break
                    else:
                        ended = process.poll() is not None  # what it printed before that is read in another round
    finally:
        os.close(terminal)
        os.close(controller)
    return process.returncode, _CONTROL.sub("", output.decode("utf-8", "replace"))


@contextmanager
def _keys_passed_on(keyboard: int) -> Iterator[None]:
    """Keys are not interpreted here: Ctrl-C is for the command."""
    before = termios.tcgetattr(keyboard)
    tty.setraw(keyboard)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSAFLUSH, before)


@contextmanager
def _size_followed(screen: int, controller: int) -> Iterator[None]:
    def follow(number: int = 0, frame: object = None) -> None:
        with suppress(OSError):
            fcntl.ioctl(controller, termios.TIOCSWINSZ, fcntl.ioctl(screen, termios.TIOCGWINSZ, b"\0" * 8))

    follow()
    before = signal.signal(signal.SIGWINCH, follow)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


def _keep(output: bytearray, data: bytes) -> None:
    output += data
    if len(output) > _KEPT:
        del output[: len(output) - _KEPT]
