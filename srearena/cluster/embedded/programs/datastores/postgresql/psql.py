"""The clients: psql and pg_isready."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote, urlsplit

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.processes.execution import Exit
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.dialogue import Dialogue
from srearena.cluster.embedded.programs.datastores.sql import grids
from srearena.cluster.embedded.programs.datastores.sql.statements import split

PORT = 5432
_VALUES = {
    "h": "host",
    "host": "host",
    "p": "port",
    "port": "port",
    "U": "user",
    "username": "user",
    "d": "database",
    "dbname": "database",
    "c": "command",
    "command": "command",
    "f": "file",
    "file": "file",
    "F": "separator",
    "v": "variable",
    "set": "variable",
    "variable": "variable",
    "P": "print",
    "pset": "print",
    "t": "timeout",
}
_SWITCHES = {
    "t": "tuples",
    "tuples-only": "tuples",
    "A": "unaligned",
    "no-align": "unaligned",
    "x": "expanded",
    "q": "quiet",
    "expanded": "expanded",
    "quiet": "quiet",
    "l": "list",
    "list": "list",
    "w": "",
    "W": "",
    "X": "",
    "1": "",
    "a": "",
    "no-psqlrc": "",
    "no-password": "",
    "e": "",
    "b": "",
    "single-transaction": "",
    "csv": "csv",
    "V": "version",
    "version": "version",
}
_GONE = (
    "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally\n"
    "\tbefore or while processing the request.\n"
)


class Arguments:
    """psql's own: short ones may be joined (-tAc 'select 1')."""

    def __init__(self, words: list[str], *, switches: dict[str, str]) -> None:
        self.values: dict[str, str] = {}
        self.actions: list[tuple[str, str]] = []
        self.on: set[str] = set()
        self.operands: list[str] = []
        self.unknown = ""
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word.startswith("--"):
                name, equals, value = word[2:].partition("=")
                if name in _VALUES:
                    self._put(_VALUES[name], value if equals or not rest else rest.pop(0))
                elif name in switches:
                    self.on.add(switches[name])
                else:
                    self.unknown = word
            elif word.startswith("-") and len(word) > 1:
                letters = word[1:]
                while letters:
                    letter, letters = letters[0], letters[1:]
                    if letter in switches:
                        self.on.add(switches[letter])
                    elif letter in _VALUES:
                        self._put(_VALUES[letter], letters if letters or not rest else rest.pop(0))
                        break
                    else:
                        self.unknown = f"-{letter}"
            else:
                self.operands.append(word)

    def _put(self, name: str, value: str) -> None:
        if name in ("command", "file"):
            self.actions.append((name, value))
        self.values[name] = value
        if name == "variable":
            key, _, setting = value.partition("=")
            self.values[f"variable:{key}"] = setting


class Psql:
    def __init__(self, process: Process) -> None:
        self.process = process
        self.arguments = Arguments(process.argv[1:], switches=_SWITCHES)
        env, values = process.env, self.arguments.values
        operands = self.arguments.operands
        self.host = values.get("host", env.get("PGHOST", ""))
        self.port = int(values.get("port", env.get("PGPORT", "5432")) or PORT)
        account = process.container.program.accounts(process.files).by_uid(process.credentials.uid)
        self.user = (
            values.get("user") or (operands[1] if len(operands) > 1 else "") or env.get("PGUSER", "") or account.name
        )
        self.password = env.get("PGPASSWORD", "")
        self.database = values.get("database") or (operands[0] if operands else "") or env.get("PGDATABASE", "")
        self._url()
        self.database = self.database or self.user
        self.dialogue: Dialogue | None = None
        self.stop_on_error = self.arguments.values.get("variable:ON_ERROR_STOP", "").lower() in ("1", "on", "true")

    def _url(self) -> None:
        text = self.database
        if text.startswith(("postgres://", "postgresql://")):
            url = urlsplit(text)
            self.host, self.port = url.hostname or self.host, url.port or self.port
            self.user, self.password = unquote(url.username or self.user), unquote(url.password or self.password)
            self.database = url.path.lstrip("/")
        elif "=" in text:
            pairs = dict(pair.split("=", 1) for pair in text.split() if "=" in pair)
            self.host, self.port = pairs.get("host", self.host), int(pairs.get("port", self.port))
            self.user, self.password = pairs.get("user", self.user), pairs.get("password", self.password)
            self.database = pairs.get("dbname", "")

    async def run(self) -> int:
        if self.arguments.unknown:
            await self.process.error(f"psql: error: unrecognized option '{self.arguments.unknown}'\n")
            return 1
        if "version" in self.arguments.on:
            await self.process.write("psql (PostgreSQL) 17.6 (Debian 17.6-1.pgdg13+1)\n")
            return 0
        status = await self.connect()
        if status:
            return status
        try:
            return await self._work()
        finally:
            if self.dialogue is not None:
                self.dialogue.connection.close()

    async def connect(self) -> int:
        local = not self.host or self.host.startswith("/")
        result = await self.process.container.network.connect(
            "127.0.0.1" if local else self.host, self.port, timeout=30.0
        )
        if result.outcome is not Outcome.CONNECTED or result.connection is None:
            await self.process.error(unreachable(self.host, result.address, self.port, result.outcome))
            return 2
        self.dialogue = await Dialogue.open(result.connection, "postgresql")
        hello = {
            "user": self.user,
            "password": self.password,
            "database": self.database,
            "local": local,
            "application": "psql",
        }
        reply = await self.ask({"hello": hello})
        place = f'on socket "/var/run/postgresql/.s.PGSQL.{self.port}"'
        if not local:
            place = f'at "{self.host}" ({result.address or self.host}), port {self.port}'
        if reply is None:
            await self.process.error(f"psql: error: connection to server {place} failed: {_GONE}")
            return 2
        if "error" in reply:
            await self.process.error(f"psql: error: connection to server {place} failed: {reply['error']}\n")
            return 2
        return 0

    async def ask(self, message: dict[str, Any]) -> dict[str, Any] | None:
        assert self.dialogue is not None
        return await self.dialogue.ask(message)

    async def _work(self) -> int:
        if "list" in self.arguments.on:
            return 0 if await self._meta("\\l") else 1
        for kind, value in self.arguments.actions:
            if kind == "command":
                good = await self._meta(value) if value.startswith("\\") else await self._text(value, stop=True)
                if not good:
                    return 1
            else:
                try:
                    text = self.process.files.read_text(value)
                except OSError as error:
                    await self.process.error(f"psql: error: {value}: {error.strerror}\n")
                    return 1
                if not await self._text(text, stop=self.stop_on_error, prefix=f"psql:{value}: ") and self.stop_on_error:
                    return 3
        return 0 if self.arguments.actions else await self._interactive()

    async def _text(self, text: str, *, stop: bool, prefix: str = "") -> bool:
        good = True
        lines = re.split(r"(?m)^(\\.*)$", text)
        for index, part in enumerate(lines):
            if index % 2:
                good = await self._meta(part) and good
                continue
            statements, rest = split(part)
            for statement in [*(f"{each};" for each in statements), *([rest] if rest else [])]:
                if not await self._statement(statement, prefix):
                    good = False
                    if stop:
                        return False
        return good

    async def _interactive(self) -> int:
        buffer = ""
        tty = self.process.fd(0).is_tty
        if tty:
            await self.process.write('psql (17.6 (Debian 17.6-1.pgdg13+1))\nType "help" for help.\n\n')
        while True:
            if tty:
                await self.process.write(f"{self.database}{'-' if buffer.strip() else '='}# ")
            line = await self.process.fd(0).read_line()
            if not line:
                break
            text = line.decode(errors="replace")
            if not buffer.strip() and text.strip() in ("exit", "quit"):
                return 0
            if not buffer.strip() and text.lstrip().startswith("\\"):
                await self._meta(text.strip())
                continue
            statements, buffer = split(buffer + text)
            buffer = f"{buffer}\n" if buffer else ""
            for statement in statements:
                if not await self._statement(f"{statement};") and self.stop_on_error:
                    return 3
        if buffer.strip() and not await self._statement(buffer.strip()) and self.stop_on_error:
            return 3
        return 0

    async def _statement(self, statement: str, prefix: str = "") -> bool:
        reply = await self.ask({"sql": statement})
        if reply is None:
            await self.process.error(_GONE)
            raise Exit(2)
        if reply.get("notice"):
            await self.process.error(f"{reply['notice']}\n")
        if "error" in reply:
            await self.process.error(f"{prefix}{reply['error']}\n")
            if reply.get("fatal"):
                await self.process.error(f"{_GONE}connection to server was lost\n")
                raise Exit(2)
            return False
        if reply["copied"]:
            await self.process.write(reply["copied"])
            return True
        if reply["columns"]:
            await self.process.write(self._table(reply["columns"], reply["rows"]))
            if not re.match(r"\s*(?:INSERT|UPDATE|DELETE)", statement, re.IGNORECASE):
                return True
        if "quiet" not in self.arguments.on:
            await self.process.write(f"{reply['tag']}\n")
        return True

    def _table(self, columns: list[str], rows: list[list[Any]], title: str = "") -> str:
        on, tuples = self.arguments.on, "tuples" in self.arguments.on
        if "csv" in on:
            return grids.unaligned(columns, rows, tuples=tuples, separator=",").rpartition("(")[0]
        if "unaligned" in on:
            return grids.unaligned(columns, rows, tuples=tuples, separator=self.arguments.values.get("separator", "|"))
        if "expanded" in on:
            return grids.expanded(columns, rows)
        return grids.aligned(columns, rows, tuples=tuples, title=title)

    async def _meta(self, line: str) -> bool:
        word, _, argument = line.lstrip("\\").rstrip(";").partition(" ")
        if word in ("q", "quit"):
            raise Exit(0)
        if word == "x":
            self.arguments.on ^= {"expanded"}
            await self.process.write(f"Expanded display is {'on' if 'expanded' in self.arguments.on else 'off'}.\n")
            return True
        if word == "t":
            self.arguments.on ^= {"tuples"}
            return True
        if word in ("timing", "set", "echo", "pset", "unset", "encoding"):
            if word == "echo":
                await self.process.write(f"{argument}\n")
            return True
        if word in ("c", "connect"):
            self.database = argument.split()[0] if argument else self.database
            status = await self.connect()
            if not status:
                await self.process.write(
                    f'You are now connected to database "{self.database}" as user "{self.user}".\n'
                )
            return status == 0
        if word == "conninfo":
            place = f'on host "{self.host}"' if self.host else 'via socket in "/var/run/postgresql"'
            text = (
                f'You are connected to database "{self.database}" as user "{self.user}" {place} at port "{self.port}".'
            )
            await self.process.write(f"{text}\n")
            return True
        reply = await self.ask({"describe": word, "argument": argument.strip()})
        if reply is None:
            await self.process.error(_GONE)
            raise Exit(2)
        if reply.get("error"):
            await self.process.error(f"{reply['error']}\n")
            return not reply["error"].startswith("\\")
        text = self._table(reply["columns"], reply["rows"], reply["title"])
        if reply["title"].startswith("Table ") and not {"unaligned", "csv"} & self.arguments.on:
            text = text.rpartition("(")[0] + reply["below"] + "\n"
        await self.process.write(text)
        return True


def unreachable(host: str, address: str, port: int, outcome: Outcome) -> str:
    if not host or host.startswith("/"):
        return (
            f'psql: error: connection to server on socket "/var/run/postgresql/.s.PGSQL.{port}" failed: '
            "No such file or directory\n\tIs the server running locally and accepting connections on that socket?\n"
        )
    if outcome in (Outcome.NXDOMAIN, Outcome.DNS_FAILURE):
        return f'psql: error: could not translate host name "{host}" to address: Name or service not known\n'
    reason = "Connection refused" if outcome is Outcome.REFUSED else str(outcome).capitalize()
    return (
        f'psql: error: connection to server at "{host}" ({address}), port {port} failed: {reason}\n'
        "\tIs the server running on that host and accepting TCP/IP connections?\n"
    )


async def is_ready(process: Process) -> int:
    """pg_isready."""
    arguments = Arguments(process.argv[1:], switches={"q": "quiet", "quiet": "quiet"})
    host = arguments.values.get("host", process.env.get("PGHOST", ""))
    port = int(arguments.values.get("port", process.env.get("PGPORT", "5432")) or PORT)
    result = await process.container.network.connect(host or "127.0.0.1", port, timeout=3.0)
    if result.connection is not None:
        result.connection.close()
    up = result.outcome is Outcome.CONNECTED
    if "quiet" not in arguments.on:
        place = f"{host or '/var/run/postgresql'}:{port}"
        await process.write(f"{place} - {'accepting connections' if up else 'no response'}\n")
    return 0 if up else 2
