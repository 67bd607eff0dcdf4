"""Parent process of the agent: forwards its connections out of the sandbox, and kills it when Zero dies.

`gateway.py PORT=SOCKET ... -- COMMAND ...` listens on loopback ports and forwards each connection to a Unix socket; at
its other end, outside the sandbox, `zero.relay` connects to the target. It runs the command and exits with its status.
When Zero is killed, the command is killed too: an unattended agent would go on spending money. If Zero is not an
ancestor of this process (in a container), `life=SOCKET` is a connection that Zero keeps open and that breaks when Zero
dies. The file runs as a script, with the standard library only.
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

LIFELINE = "life"
_PR_SET_PDEATHSIG = 1


def wrap(forwards: Sequence[str], command: Sequence[str]) -> list[str]:
    """The command line that runs a command as a child of this gateway."""
    return [sys.executable, "-I", "-S", __file__, *forwards, "--", *command]


def pump(source: socket.socket, target: socket.socket) -> None:
    """Copy data from one socket to another until the end, and shut down the target's write side."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def forward(one: socket.socket, other: socket.socket) -> None:
    """Copy data between two sockets in both directions until both have ended."""
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
        threading.Thread(target=forward, args=(client, server), daemon=True).start()


def _die_with_parent() -> None:
    """Have the kernel signal this process when Zero dies, and kill the process group then."""

    def end(*_: object) -> None:
        os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGUSR1, end)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)


def _die_with_connection(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Exit when a connection breaks; as the container's first process this ends the container."""
    with contextlib.suppress(OSError):
        connection.recv(1)
    process.kill()
    os._exit(128 + signal.SIGKILL)


def main(arguments: list[str]) -> int:
    if os.getpgrp() == os.getpid():  # neither in bubblewrap, which does this itself, nor in the user's process group
        _die_with_parent()
    split = arguments.index("--")
    lifeline: socket.socket | None = None
    for item in arguments[:split]:
        port, _, path = item.partition("=")
        if port == LIFELINE:
            lifeline = socket.socket(socket.AF_UNIX)
            try:
                lifeline.connect(path)
            except OSError:
                print("the process that started this container is gone", file=sys.stderr)
                return 128 + signal.SIGKILL
            continue
        listener = socket.create_server(("127.0.0.1", int(port)), backlog=64)
        threading.Thread(target=_serve, args=(listener, path), daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # the command gets the signal too, and this process exits after it
    try:
        process = subprocess.Popen(arguments[split + 1 :])
    except OSError as problem:
        print(f"cannot start {arguments[split + 1]}: {problem.strerror}", file=sys.stderr)
        return 127
    if lifeline is not None:
        threading.Thread(target=_die_with_connection, args=(lifeline, process), daemon=True).start()
    while True:
        try:
            code = process.wait()
            return 128 - code if code < 0 else code
        except InterruptedError:
            continue


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
