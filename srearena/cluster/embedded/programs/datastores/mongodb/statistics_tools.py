"""mongostat and mongotop: a server's counters, a line or a table an interval."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.dialogue import Dialogue
from srearena.cluster.embedded.programs.datastores.mongodb import values
from srearena.cluster.embedded.programs.datastores.mongodb.shell import Target
from srearena.cluster.embedded.programs.serving import Flags

SWITCHES = frozenset(("noheaders", "json", "ssl", "tls", "quiet", "locks", "discover", "all"))
_HEADS = (
    *("insert", "query", "update", "delete", "getmore", "command", "dirty", "used", "flushes", "vsize", "res", "qrw"),
    *("arw", "net_in", "net_out", "conn", "time"),
)
_WIDTHS = (6, 5, 6, 6, 7, 7, 5, 4, 7, 5, 4, 3, 3, 6, 7, 4, 19)
HEADER_ROWS = 10


class StatisticsTool:
    """One run of mongostat or mongotop."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.flags = Flags(process.argv[1:], SWITCHES)
        self.interval = max(1.0, next((float(w) for w in self.flags.operands if w.isdigit()), 1.0))
        self.flags.operands = [word for word in self.flags.operands if not word.isdigit()]
        self.target = Target(self.flags)
        count = self.flags.get("n", self.flags.get("rowcount"))
        self.rows = int(count) if count.isdigit() else 0
        self.dialogue: Dialogue | None = None

    async def run(self) -> int:
        target, process = self.target, self.process
        result = await process.container.network.connect(target.host, target.port, timeout=10.0)
        if result.outcome is not Outcome.CONNECTED or result.connection is None:
            await process.error(
                f"Failed: error connecting to db server: no reachable servers: {target.host}:{target.port}\n"
            )
            return 1
        self.dialogue = await Dialogue.open(result.connection, "mongodb")
        try:
            if target.user:
                login = {"authenticate": 1, "user": target.user, "pwd": target.password, "db": target.source}
                if (await self._ask(login)).get("ok") != 1:
                    await process.error(
                        "Failed: error connecting to db server: server returned error on SASL "
                        "authentication step: Authentication failed.\n"
                    )
                    return 1
            return await (self._top() if process.binary == "mongotop" else self._statistics())
        finally:
            result.connection.close()

    async def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self.dialogue is not None
        reply = await self.dialogue.ask({"db": "admin", "command": values.packed(command)})
        return {"ok": 0, "errmsg": "connection closed"} if reply is None else values.unpacked(reply)

    async def _refused(self, reply: dict[str, Any]) -> int:
        await self.process.error(f"Failed: {reply.get('errmsg', '')}\n")
        return 1

    async def _statistics(self) -> int:
        before = await self._ask({"serverStatus": 1})
        if before.get("ok") != 1:
            return await self._refused(before)
        number = 0
        while not self.rows or number < self.rows:
            await self.process.sleep(self.interval)
            after = await self._ask({"serverStatus": 1})
            if after.get("ok") != 1:
                return await self._refused(after)
            if number % HEADER_ROWS == 0 and "noheaders" not in self.flags.values:
                await self.process.write(_line(_HEADS))
            await self.process.write(_line(self._row(before, after)))
            before, number = after, number + 1
        return 0

    def _row(self, before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
        def rate(group: str, name: str) -> int:
            return int((_number(after[group][name]) - _number(before[group][name])) / self.interval)

        counts = [rate("opcounters", n) for n in ("insert", "query", "update", "delete")]
        lock, cache = after["globalLock"], after["wiredTiger"]["cache"]
        used = _number(cache["bytes currently in the cache"]) / _number(cache["maximum bytes configured"])
        at = datetime.fromtimestamp(self.process.clock.now, UTC).strftime("%b %d %H:%M:%S.%f")[:19]
        return (
            *(str(count) if count else "*0" for count in counts),
            *(str(rate("opcounters", "getmore")), f"{max(0, rate('opcounters', 'command'))}|0"),
            *("0.0%", f"{used:.1%}", "0", "1.46G", f"{after['mem']['resident']}M"),
            f"{lock['currentQueue']['readers']}|{lock['currentQueue']['writers']}",
            f"{lock['activeClients']['readers']}|{lock['activeClients']['writers']}",
            *(_bytes(rate("network", "bytesIn")), _bytes(rate("network", "bytesOut"))),
            *(str(after["connections"]["current"]), at),
        )

    async def _top(self) -> int:
        before = await self._ask({"top": 1})
        if before.get("ok") != 1:
            return await self._refused(before)
        number = 0
        while not self.rows or number < self.rows:
            await self.process.sleep(self.interval)
            after = await self._ask({"top": 1})
            at = datetime.fromtimestamp(self.process.clock.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            lines = [f"{'ns':>40}    total    read    write    {at}"]
            for place, row in sorted(after["totals"].items()):
                if place != "note":
                    old = before["totals"].get(place, {})
                    spent = [
                        f"{(row[k]['time'] - old.get(k, {}).get('time', 0)) // 1000}ms"
                        for k in ("total", "readLock", "writeLock")
                    ]
                    lines.append(f"{place:>40}  {spent[0]:>7} {spent[1]:>7}  {spent[2]:>7}")
            await self.process.write("\n".join(lines) + "\n\n")
            before, number = after, number + 1
        return 0


def _line(cells: tuple[str, ...]) -> str:
    return " ".join(cell.rjust(width) for cell, width in zip(cells, _WIDTHS, strict=True)) + "\n"


def _bytes(number: int) -> str:
    return f"{number / 1000:.1f}k" if number >= 1000 else f"{number}b"


def _number(value: Any) -> int:
    return value.value if isinstance(value, values.Long) else int(value)
