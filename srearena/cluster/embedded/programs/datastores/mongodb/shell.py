"""The two shells: `mongo` (up to 5.0) and `mongosh`. Arguments, start-up lines, and running what one types.

A script comes from --eval, from files, or from standard input; each statement's value is printed as that shell prints
it. Errors go where and how that shell puts them, and give its exit code.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.processes.execution import Exit
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.dialogue import Dialogue
from srearena.cluster.embedded.programs.datastores.mongodb import values
from srearena.cluster.embedded.programs.datastores.mongodb.evaluation import Evaluator, Thrown
from srearena.cluster.embedded.programs.datastores.mongodb.members import Host, json_text
from srearena.cluster.embedded.programs.datastores.mongodb.script import ScriptSyntaxError, parse
from srearena.cluster.embedded.programs.datastores.mongodb.shell_objects import (
    Cursor,
    Database,
    Document,
    ReplicaSet,
    Shell,
    long_number,
)
from srearena.cluster.embedded.programs.serving import Flags

PORT = 27017
UNCAUGHT = 252
"""The old shell's exit code for an uncaught error (-4)."""
SWITCHES = frozenset(("quiet", "norc", "shell", "nodb", "tls", "ssl", "verbose", "tlsAllowInvalidCertificates", "json"))
BATCH = 20
_REASONS = {
    Outcome.REFUSED: "Connection refused",
    Outcome.TIMEOUT: "Connection timed out",
    Outcome.RESET: "Connection reset by peer",
}


class Target:
    """Where to, as whom, and which database first."""

    def __init__(self, flags: Flags) -> None:
        self.host, self.port, self.database = "127.0.0.1", PORT, "test"
        self.user = flags.get("u", flags.get("username"))
        self.password = flags.get("p", flags.get("password"))
        self.source = flags.get("authenticationDatabase")
        self.scripts: list[str] = []
        for index, word in enumerate(flags.operands):
            if word.endswith((".js", ".mongodb")):
                self.scripts.append(word)
            elif index == 0:
                self._address(word)
        if "host" in flags.values:
            self._address(flags.get("host") + f"/{self.database}")
        self.port = flags.port("port", self.port)
        self.source = self.source or (self.database if self.database != "test" else "admin")

    def _address(self, text: str) -> None:
        if text.startswith("mongodb://"):
            url = urlsplit(text)
            self.user = self.user or unquote(url.username or "")
            self.password = self.password or unquote(url.password or "")
            for pair in url.query.split("&"):
                if pair.startswith("authSource="):
                    self.source = self.source or pair.removeprefix("authSource=")
            text = f"{url.netloc.rpartition('@')[2]}{url.path}"
        place, slash, database = text.partition("/")
        if not slash and ":" not in place and "." not in place:
            place, database = "", place
        host, _, port = place.partition(":")
        self.host = host if host and host != "localhost" else self.host
        self.port = int(port) if port.isdigit() else self.port
        self.database = database or self.database


class MongoShell:
    def __init__(self, process: Process, version: str) -> None:
        self.process = process
        self.version = version
        self.modern = process.binary == "mongosh"
        self.flags = Flags(process.argv[1:], SWITCHES)
        self.quiet = "quiet" in self.flags.values
        self.target = Target(self.flags)
        self.evaluator = Evaluator(process)
        self.dialogue: Dialogue | None = None
        self.shell = Shell(self._send, self.evaluator, self._write, modern=self.modern)
        self.database = Database(self.shell, self.target.database)
        self._define()

    # --- the way to the server ---------------------------------------------------------------------------------

    async def _send(self, database: str, command: Document) -> Document:
        if self.dialogue is None:
            raise Thrown({"name": "Error", "message": "not connected"})
        reply = await self.dialogue.ask({"db": database, "command": values.packed(command)})
        if reply is None:
            name = "MongoNetworkError" if self.modern else "Error"
            raise Thrown({"name": name, "message": "connection closed"})
        unpacked: Document = values.unpacked(reply)
        return unpacked

    async def _write(self, text: str) -> None:
        await self.process.write(text)

    async def run(self) -> int:
        if "version" in self.flags.values:
            text = "2.5.8" if self.modern else f"MongoDB shell version v{self.version}"
            await self._write(f"{text}\n")
            return 0
        try:
            status = 0 if "nodb" in self.flags.values else await self._connect()
            return status or await self._work()
        finally:
            if self.dialogue is not None:
                self.dialogue.connection.close()

    async def _connect(self) -> int:
        target = self.target
        if not self.modern and not self.quiet:
            source = f"authSource={target.source}&" if target.user else ""
            await self._write(
                f"MongoDB shell version v{self.version}\nconnecting to: mongodb://{target.host}:{target.port}/"
                f"{target.database}?{source}compressors=disabled&gssapiServiceName=mongodb\n"
            )
        result = await self.process.container.network.connect(target.host, target.port, timeout=10.0)
        if result.outcome is not Outcome.CONNECTED or result.connection is None:
            await self._unreachable(result.address or target.host, result.outcome)
            return 1
        self.dialogue = await Dialogue.open(result.connection, "mongodb")
        if target.user:
            login = {"authenticate": 1, "user": target.user, "pwd": target.password, "db": target.source}
            reply = await self._ask_first(login)
            if reply.get("ok") != 1:
                await self._rejected(str(reply.get("errmsg", "Authentication failed.")))
                return 1
        elif (await self._ask_first({"ping": 1})).get("ok") != 1:
            await self._unreachable(result.address or target.host, Outcome.RESET)
            return 1
        if not self.modern and not self.quiet:
            await self._write(f"MongoDB server version: {self.version}\n")
        return 0

    async def _ask_first(self, command: Document) -> Document:
        try:
            return await self._send(self.target.database, command)
        except Thrown as thrown:
            return {"ok": 0, "errmsg": thrown.value["message"]}

    async def _unreachable(self, address: str, outcome: Outcome) -> None:
        port = self.target.port
        if self.modern:
            code = {Outcome.REFUSED: "ECONNREFUSED", Outcome.TIMEOUT: "ETIMEDOUT"}.get(outcome, "")
            if outcome in (Outcome.NXDOMAIN, Outcome.DNS_FAILURE):
                text = f"getaddrinfo ENOTFOUND {self.target.host}"
            else:
                text = f"connect {code} {address}:{port}" if code else "connection closed"
            await self.process.error(f"MongoNetworkError: {text}\n")
            return
        reason = _REASONS.get(outcome, "Host not found")
        place = f"{self.target.host}:{port}"
        cause = f"couldn't connect to server {place}, connection attempt failed: SocketException: Error connecting to "
        cause += f"{place} :: caused by :: {reason}"
        if outcome is Outcome.RESET:
            cause = f"network error while attempting to run command 'isMaster' on host '{place}' "
        await self._write(
            f"Error: {cause} :\nconnect@src/mongo/shell/mongo.js:374:17\n@(connect):2:6\nexception: connect failed\n"
            "exiting with code 1\n"
        )

    async def _rejected(self, text: str) -> None:
        if self.modern:
            await self.process.error(f"MongoServerError: {text}\n")
        else:
            await self._write(
                f"Error: {text} :\nconnect@src/mongo/shell/mongo.js:374:17\n@(connect):2:6\n"
                "exception: connect failed\nexiting with code 1\n"
            )

    # --- running -----------------------------------------------------------------------------------------------

    async def _work(self) -> int:
        if "eval" in self.flags.values:
            status = await self._script(self.flags.get("eval"), printing=True)
            if status or not self.target.scripts:
                return status
        for path in self.target.scripts:
            try:
                text = self.process.files.read_text(path)
            except OSError as error:
                await self.process.error(f"failed to load: {path}: {error.strerror}\n")
                return 253
            status = await self._script(text, printing=False)
            if status:
                return status
        return 0 if self.target.scripts else await self._interactive()

    async def _script(self, text: str, *, printing: bool) -> int:
        try:
            value = await self.evaluator.program(parse(text))
            if printing:
                await self._show(value)
            return 0
        except ScriptSyntaxError as error:
            await self._complain(f"SyntaxError: {error}")
        except Thrown as thrown:
            await self._complain(thrown.text)
        return 1 if self.modern else UNCAUGHT

    async def _complain(self, text: str) -> None:
        if self.modern:
            await self.process.error(f"{text}\n")
        elif text.startswith("Error: error: "):
            await self._write(f"{text}\n")
        else:
            await self._write(f"uncaught exception: {text} :\n@(shell):1:1\n")

    async def _interactive(self) -> int:
        pending = ""
        while True:
            if self.modern and not self.quiet and not pending:
                await self._write(f"{self.database.name}> ")
            line = await self.process.fd(0).read_line()
            if not line:
                break
            text = line.decode(errors="replace")
            if not pending and await self._meta(text.strip().rstrip(";")):
                continue
            pending += text
            try:
                statements = parse(pending)
            except ScriptSyntaxError as error:
                if error.unfinished:
                    continue
                pending = ""
                await self._complain(f"SyntaxError: {error}")
                continue
            pending = ""
            try:
                await self._show(await self.evaluator.program(statements))
            except Thrown as thrown:
                await self._complain(thrown.text)
        await self._write("\n" if self.modern and not self.quiet else "" if self.modern else "bye\n")
        return 0

    async def _meta(self, line: str) -> bool:
        """`use x`, `show dbs`, `exit`: words of the shell that are no JavaScript."""
        words = line.split()
        if words[:1] == ["use"] and len(words) == 2:
            self._use(words[1])
            await self._write(f"switched to db {words[1]}\n")
        elif words[:1] == ["show"] and len(words) == 2:
            await self._listing(words[1])
        elif line in ("exit", "quit", "quit()", "exit()"):
            raise Exit(0)
        else:
            return not words
        return True

    def _use(self, name: str) -> None:
        self.database = Database(self.shell, name)
        self.evaluator.globals.names["db"] = self.database

    async def _listing(self, what: str) -> None:
        try:
            if what in ("dbs", "databases"):
                reply = await self.shell.command("admin", {"listDatabases": 1})
                for row in reply["databases"]:
                    await self._database_row(str(row["name"]), int(row["sizeOnDisk"]))
            elif what in ("collections", "tables"):
                for name in await self.database.do_getCollectionNames():
                    await self._write(f"{name}\n")
            elif what == "users":
                await self._show((await self.shell.command(self.database.name, {"usersInfo": 1}))["users"])
            else:
                await self._complain(f"Error: don't know how to show [{what}]")
        except Thrown as thrown:
            await self._complain(thrown.text)

    async def _database_row(self, name: str, size: int) -> None:
        if self.modern:
            await self._write(f"{name:<6}  {size / 1024:.2f} KiB\n")
        else:
            await self._write(f"{name:<6}  {size / 1024**3:.3f}GB\n")

    async def _show(self, value: Any) -> None:
        if isinstance(value, Cursor):
            rows = await value.display()
            if self.modern:
                await self._write(f"{values.modern(rows[:BATCH])}\n")
            else:
                await self._write("".join(f"{values.legacy(row, oneline=True)}\n" for row in rows[:BATCH]))
            if len(rows) > BATCH:
                await self._write('Type "it" for more\n')
            return
        if isinstance(value, Host):
            value = await value.display()
        if value is values.UNDEFINED:
            return
        if isinstance(value, str) or callable(value):
            await self._write(f"{values.plain(value)}\n")
        elif not self.modern and isinstance(value, dict) and set(value) & {"nInserted", "nMatched", "nRemoved"}:
            await self._write(f"WriteResult({values.legacy(value, oneline=True)})\n")
        else:
            await self._write(f"{values.modern(value) if self.modern else values.legacy(value)}\n")

    # --- names -------------------------------------------------------------------------------------------------

    def _define(self) -> None:
        async def written(*items: Any) -> Any:
            await self._write(" ".join(values.plain(item) for item in items) + "\n")
            return values.UNDEFINED

        async def json_written(item: Any) -> Any:
            value = await item.display() if isinstance(item, Host) else item
            await self._write(f"{values.modern(value) if self.modern else values.legacy(value)}\n")
            return values.UNDEFINED

        async def logged(*items: Any) -> Any:
            shown = [item if isinstance(item, str) else values.modern(item) for item in items]
            await self._write(" ".join(shown) + "\n")
            return values.UNDEFINED

        async def leave(code: Any = 0) -> Any:
            raise Exit(int(code))

        async def nap(milliseconds: Any) -> Any:
            await self.process.sleep(float(milliseconds) / 1000)
            return values.UNDEFINED

        async def moment(*arguments: Any) -> Any:
            if arguments and isinstance(arguments[0], str):
                return values.Moment(_seconds(arguments[0]))
            return values.Moment(arguments[0] / 1000 if arguments else self.process.clock.now)

        async def identity(text: str = "0" * 24) -> Any:
            return values.ObjectId(text)

        async def as_long(value: Any) -> Any:
            return long_number(value)

        async def same(value: Any) -> Any:
            return value

        async def as_json(value: Any, *_: Any) -> Any:
            return values.legacy(value)

        async def error(message: Any = "") -> Any:
            return {"name": "Error", "message": message}

        async def stringify(*arguments: Any) -> Any:
            return json_text(*arguments)

        async def use(name: str) -> Any:
            self._use(name)
            return f"switched to db {name}"

        self.evaluator.globals.names.update(
            db=self.database,
            rs=ReplicaSet(self.shell),
            print=written,
            printjson=json_written,
            printjsononeline=json_written,
            console={"log": logged, "error": logged},
            quit=leave,
            exit=leave,
            sleep=nap,
            Date=moment,
            ISODate=moment,
            ObjectId=identity,
            NumberLong=as_long,
            Long=as_long,
            NumberInt=same,
            Int32=same,
            Number=same,
            tojson=as_json,
            Error=error,
            JSON={"stringify": stringify},
            EJSON={"stringify": stringify},
            use=use,
            process={"exit": leave, "env": dict(self.process.env)},
        )


def _seconds(text: str) -> float:

    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise Thrown({"name": "Error", "message": f"invalid ISO date: {text}"}) from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
