"""The client programs: mysql (mariadb) and mysqladmin."""

from __future__ import annotations

import re
from typing import Any

from srearena.cluster.program_models import REASONS, ConnectResult, Exit, Outcome, Process
from srearena.cluster.program_models.datastores import Dialogue
from srearena.cluster.program_models.sql import grids, split

PORT = 3306
_VALUES = {"u": "user", "h": "host", "P": "port", "e": "execute", "D": "database", "S": "socket"}
_LONG = {"user", "host", "port", "execute", "database", "socket", "password", "protocol", "connect-timeout", "wait"}


class Client:
    def __init__(self, process: Process, product: str, daemon: str) -> None:
        self.process = process
        self.product = product
        self.daemon = daemon
        self.values: dict[str, str] = {"user": "root", "host": process.env.get("MYSQL_HOST", "")}
        self.on: set[str] = set()
        self.operands: list[str] = []
        self.password = process.env.get("MYSQL_PWD", "")
        self.has_password_argument = False
        self.prompts_for_password = False
        self._read(process.argv[1:])
        self.dialogue: Dialogue | None = None
        self.line = 0

    def _read(self, words: list[str]) -> None:
        remaining = list(words)
        while remaining:
            word = remaining.pop(0)
            if word.startswith("--"):
                name, equals, value = word[2:].partition("=")
                if name == "password":
                    self._password(value, equals != "")
                elif name in _LONG:
                    self.values[name] = value if equals or not remaining else remaining.pop(0)
                else:
                    self.on.add(
                        {"skip-column-names": "N", "batch": "B", "table": "t", "silent": "s", "vertical": "E"}.get(
                            name, name
                        )
                    )
            elif word.startswith("-") and len(word) > 1:
                self._short(word[1:], remaining)
            else:
                self.operands.append(word)

    def _short(self, letters: str, remaining: list[str]) -> None:
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter == "p":
                self._password(letters, letters != "")
                return
            if letter in _VALUES:
                self.values[_VALUES[letter]] = letters if letters or not remaining else remaining.pop(0)
                return
            self.on.add(letter)

    def _password(self, value: str, present: bool) -> None:
        self.password, self.has_password_argument, self.prompts_for_password = value, present, not present

    # --- connecting --------------------------------------------------------------------------------------------

    @property
    def host(self) -> str:
        return self.values.get("host") or "localhost"

    @property
    def port(self) -> int:
        text = self.values.get("port", str(PORT))
        return int(text) if text.isdigit() else PORT

    async def _reach(self) -> ConnectResult:
        local = self.host in ("localhost", "127.0.0.1")
        return await self.process.container.network.connect(
            "127.0.0.1" if local else self.host, self.port, timeout=10.0
        )

    def _unreachable(self, result: ConnectResult) -> str:
        if result.outcome in (Outcome.NXDOMAIN, Outcome.DNS_FAILURE):
            return f"ERROR 2005 (HY000): Unknown {self.product} server host '{self.host}' (-2)\n"
        if self.host == "localhost" and "port" not in self.values:
            path = "/var/run/mysqld/mysqld.sock"
            return f"ERROR 2002 (HY000): Can't connect to local {self.product} server through socket '{path}' (2)\n"
        place, reason = f"{self.host}:{self.port}", REASONS[result.outcome]
        return f"ERROR 2003 (HY000): Can't connect to {self.product} server on '{place}' ({reason})\n"

    async def connect(self, database: str) -> int:
        if self.prompts_for_password:
            await self.process.error("Enter password: ")
            self.password = (await self.process.fd(0).read_line()).decode(errors="replace").rstrip("\n")
            await self.process.error("\n")
        elif self.has_password_argument and self.product == "MySQL":
            await self.process.error(
                f"{self.process.binary}: [Warning] Using a password on the command line interface can be insecure.\n"
            )
        result = await self._reach()
        if result.outcome is not Outcome.CONNECTED or result.connection is None:
            await self.process.error(self._unreachable(result))
            return 1
        if not await result.connection.read():
            await self.process.error(
                "ERROR 2013 (HY000): Lost connection to MySQL server at 'reading initial communication packet'\n"
            )
            return 1
        self.dialogue = await Dialogue.open(result.connection, "mysql")
        hello = {"user": self.values["user"], "password": self.password, "database": database}
        reply = await self.ask({"hello": hello})
        if "error" in reply:
            await self.process.error(f"ERROR {reply['number']} ({reply['state']}): {reply['error']}\n")
            return 1
        return 0

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self.dialogue is not None
        reply = await self.dialogue.ask(message)
        if reply is None:
            await self.process.error(f"ERROR 2013 (HY000): Lost connection to {self.product} server during query\n")
            raise Exit(1)
        return reply

    # --- mysql -------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        if {"V", "version"} & self.on:
            await self.process.write(
                f"{self.process.binary}  Ver 8.4.7 for Linux on x86_64 ({self.product} Community Server - GPL)\n"
            )
            return 0
        database = self.operands[0] if self.operands else self.values.get("database", "")
        status = await self.connect(database)
        if status:
            return status
        try:
            if "execute" in self.values:
                return await self._text(self.values["execute"])
            return await self._interactive()
        finally:
            if self.dialogue is not None:
                self.dialogue.connection.close()

    async def _text(self, text: str) -> int:
        for statement, vertical in _statements(text):
            self.line = 1
            if await self._statement(statement, vertical) and "f" not in self.on:
                return 1
        return 0

    async def _interactive(self) -> int:
        tty = self.process.fd(0).is_tty
        if tty:
            await self.process.write(f"Welcome to the {self.product} monitor.  Commands end with ; or \\g.\n\n")
        buffer = ""
        while True:
            if tty:
                await self.process.write("    -> " if buffer else "mysql> ")
            line = await self.process.fd(0).read_line()
            if not line:
                break
            self.line += 1
            text = line.decode(errors="replace")
            if not buffer and text.strip().rstrip(";") in ("exit", "quit", "\\q"):
                break
            buffer += text
            if not re.search(r"(;|\\G|\\g)\s*$", buffer) and not buffer.lower().startswith("use "):
                continue
            for statement, vertical in _statements(buffer):
                failed = await self._statement(statement, vertical)
                if failed and not tty and "f" not in self.on:
                    return 1
            buffer = ""
        for statement, vertical in _statements(buffer):
            if await self._statement(statement, vertical):
                return 1
        return 0

    async def _statement(self, statement: str, vertical: bool) -> int:
        started = self.process.clock.now
        reply = await self.ask({"sql": statement})
        tty = self.process.fd(1).is_tty
        if "error" in reply:
            place = "" if tty else f" at line {max(1, self.line)}"
            await self.process.error(f"ERROR {reply['number']} ({reply['state']}){place}: {reply['error']}\n")
            return 1
        columns, rows = reply["columns"], reply["rows"]
        took = f"({self.process.clock.now - started:.2f} sec)"
        if columns and rows:
            if vertical or "E" in self.on:
                await self.process.write(grids.vertical(columns, rows))
            elif "t" in self.on or (tty and "B" not in self.on):
                await self.process.write(grids.boxed(columns, rows))
            else:
                await self.process.write(grids.tabbed(columns, rows, names="N" not in self.on and "s" not in self.on))
        if tty:
            if reply["database"]:
                await self.process.write("Database changed\n")
            elif columns:
                count = f"{len(rows)} row{'' if len(rows) == 1 else 's'} in set" if rows else "Empty set"
                await self.process.write(f"{count} {took}\n\n")
            else:
                await self.process.write(f"Query OK, {reply['affected']} rows affected {took}\n\n")
        return 0

    # --- mysqladmin --------------------------------------------------------------------------------------------

    async def administer(self) -> int:
        """Run mysqladmin; `ping` needs no login, the other commands do."""
        command = self.operands[0] if self.operands else ""
        result = await self._reach()
        name = self.process.binary
        if result.outcome is not Outcome.CONNECTED or result.connection is None:
            await self.process.error(
                f"{name}: connect to server at '{self.host}' failed\n"
                f"error: 'Can't connect to {self.product} server on '{self.host}:{self.port}' (111)'\n"
                f"Check that {self.daemon} is running on {self.host} and that the port is {self.port}.\n"
            )
            return 1
        result.connection.close()
        if command == "ping":
            await self.process.write(f"{self.daemon} is alive\n")
            return 0
        status = await self.connect("")
        if status:
            return status
        statements = {
            "status": "SHOW GLOBAL STATUS",
            "extended-status": "SHOW GLOBAL STATUS",
            "processlist": "SHOW PROCESSLIST",
            "variables": "SHOW VARIABLES",
            "version": "SELECT VERSION()",
        }
        if command not in statements:
            await self.process.error(f"{name}: Unknown command: '{command}'\n")
            return 1
        reply = await self.ask({"sql": statements[command]})
        await self.process.write(grids.boxed(reply["columns"], reply["rows"]))
        return 0


def _statements(text: str) -> list[tuple[str, bool]]:
    """The statements of a text, each with whether its rows are printed vertically."""
    marked = re.sub(r"\\G", " \x02;", text).replace("\\g", ";")
    complete, incomplete = split(marked)
    statements = [*complete, *([incomplete] if incomplete else [])]
    return [
        (each.replace("\x02", "").strip(), "\x02" in each) for each in statements if each.replace("\x02", "").strip()
    ]
