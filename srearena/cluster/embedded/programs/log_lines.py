"""Log lines written without waiting, from code that handles bulk traffic."""

from __future__ import annotations

from srearena.cluster.embedded.machine.processes.process import Process


def write_now(process: Process, text: str, descriptor: int = 1) -> None:
    """Write a line if it can be taken at once, as a container's log always does; drop it otherwise."""
    file = process.fds.get(descriptor)
    if file is None or process.done.is_set:
        return
    writing = file.write(text.encode(errors="surrogateescape"))
    try:
        writing.send(None)
    except (StopIteration, OSError):
        return
    writing.close()
