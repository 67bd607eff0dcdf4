"""agnhost port-forward-tester: takes one connection, reads what it expects, sends its chunks, and ends."""

from __future__ import annotations

from srearena.cluster.embedded.clock import Signal
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.machine.networking.sockets import Connection
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.agnhost.commands import MEMORY, command
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error

_LINGER_SECONDS = 0.5
"""Between the end of writing and the end of the connection, so that a client reads the last bytes."""


@command("port-forward-tester")
async def port_forward_tester(process: Process, flags: Flags) -> int:
    process.set_memory(MEMORY)
    port = process.env.get("BIND_PORT", "")
    if not port.isdigit():
        await process.write(f"Error resolving: lookup tcp/{port}: unknown port\n")
        return 1
    ended: Signal[int] = Signal(process.clock)

    async def converse(connection: Connection) -> None:
        listener.close()
        status = await _converse(process, connection)
        connection.close()
        ended.set(status)

    try:
        address = process.env.get("BIND_ADDRESS") or "localhost"
        listener = process.container.namespace.listen(process, int(port), address=address, stream=converse)
    except OSError as error:
        await process.write(f"Error listening: {go_bind_error(int(port), error)}\n")
        return 1
    await ended.wait()
    listener.close()
    return ended.value


async def _converse(process: Process, connection: Connection) -> int:
    await process.write("Accepted client connection\n")
    expected = process.env.get("EXPECTED_CLIENT_DATA", "").encode()
    if expected:
        found = await connection.read(len(expected))
        if len(found) != len(expected):
            end = "EOF" if not found else "<nil>"
            text = f"Expected to read {len(expected)} bytes from client, but got {len(found)} instead. err={end}\n"
            await process.write(text)
            return 2
        if found != expected:
            shown = (quoted(text.decode(errors="replace")) for text in (expected, found))
            await process.write("Expect to read {}, but got {}. err=<nil>\n".format(*shown))
            return 3
        await process.write("Received expected client data\n")
    numbers: list[int] = []
    for name in ("CHUNKS", "CHUNK_SIZE", "CHUNK_INTERVAL"):
        text = process.env.get(name, "")
        if not text.isdigit():
            syntax = f"strconv.Atoi: parsing {quoted(text)}: invalid syntax"
            await process.write(f"Error parsing {name} {quoted(text)}: {syntax}\n")
            return 1
        numbers.append(int(text))
    chunks, size, interval = numbers
    for chunk in range(chunks):
        try:
            await connection.write(b"x" * size)
        except OSError as error:
            problem = f"write tcp: {(error.strerror or '').lower()}"
            await process.write(f"Expected to write {size} bytes from client, but wrote 0 instead. err={problem}\n")
            return 4
        if chunk + 1 < chunks:
            await process.sleep(interval / 1000)
    await process.write("Shutting down connection\n")
    connection.close_writing()
    await process.sleep(_LINGER_SECONDS)
    await process.write("Done\n")
    return 0
