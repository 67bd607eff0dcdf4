"""The agent's parent: inside the sandbox it holds the only doors to the network; everywhere, it dies with Zero.

`gateway.py PORT=SOCKET ... -- COMMAND ...` listens on loopback ports and passes each connection on to a Unix socket,
at whose other end, outside, `zero.relay` decides where it leads. Then it runs the command and ends as that ends. When
Zero is killed outright, so is the command: an agent that nobody watches would go on spending money. Where Zero is not
an ancestor of ours (in a container), `life=SOCKET` is a line that Zero holds, and that breaks when Zero is gone. It is
started as a file, with nothing but the standard library at hand.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence

LIFE = "life"
_PR_SET_PDEATHSIG = 1


def behind(doors: Sequence[str], command: Sequence[str]) -> list[str]:
    """The command line that runs a command behind this gateway."""
    return [sys.executable, "-I", "-S", __file__, *doors, "--", *command]


def pump(source: socket.socket, target: socket.socket) -> None:
    """Everything from one socket to another; the end too."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def join(one: socket.socket, other: socket.socket) -> None:
    """Both directions between two sockets, until both have ended."""
    with one, other:
        back = threading.Thread(target=pump, args=(other, one), daemon=True)
        back.start()
        pump(one, other)
        back.join()


def _serve(listener: socket.socket, path: str) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(path)
        except OSError:
            client.close()
            continue
        threading.Thread(target=join, args=(client, server), daemon=True).start()


def _die_with_parent() -> None:
    """Have the kernel tell us when Zero is gone, and take our process group along then."""

    def end(*_: object) -> None:
        os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGUSR1, end)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)


def _die_with(line: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """End with the other end of a line; in a container everything else ends with us."""
    with contextlib.suppress(OSError):
        line.recv(1)
    process.kill()
    os._exit(128 + signal.SIGKILL)


def main(arguments: list[str]) -> int:
    if os.getpgrp() == os.getpid():  # not in a sandbox, which sees to that itself, nor in the user's own group
        _die_with_parent()
    split = arguments.index("--")
    line: socket.socket | None = None
    for door in arguments[:split]:
        port, _, path = door.partition("=")
        if port == LIFE:
            line = socket.socket(socket.AF_UNIX)
            try:
                line.connect(path)
            except OSError:
                print("whoever started this is gone", file=sys.stderr)
                return 128 + signal.SIGKILL
            continue
        listener = socket.create_server(("127.0.0.1", int(port)), backlog=64)
        threading.Thread(target=_serve, args=(listener, path), daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # the command gets it too, unhandled, and we end when it does
    try:
        process = subprocess.Popen(arguments[split + 1 :])
    except OSError as problem:
        print(f"cannot start {arguments[split + 1]}: {problem.strerror}", file=sys.stderr)
        return 127
    if line is not None:
        threading.Thread(target=_die_with, args=(line, process), daemon=True).start()
    while True:
        try:
            code = process.wait()
            return 128 - code if code < 0 else code
        except InterruptedError:
            continue


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
