"""Inside the sandbox: the only doors to the network, and the agent's parent.

`gateway.py PORT=SOCKET ... -- COMMAND ...` listens on loopback ports and passes each connection on to a Unix socket,
at whose other end, outside, `zero.relay` decides where it leads. Then it runs the command and ends as that ends. It is
started as a file, with nothing but the standard library at hand.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading


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


def main(arguments: list[str]) -> int:
    split = arguments.index("--")
    for door in arguments[:split]:
        port, _, path = door.partition("=")
        listener = socket.create_server(("127.0.0.1", int(port)), backlog=64)
        threading.Thread(target=_serve, args=(listener, path), daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # the command gets it too, unhandled, and we end when it does
    process = subprocess.Popen(arguments[split + 1 :])
    while True:
        try:
            code = process.wait()
            return 128 - code if code < 0 else code
        except InterruptedError:
            continue


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
