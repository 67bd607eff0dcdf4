"""MongoDB: the image's entry point with its initialisation scripts, mongod, and the shells the release came with."""

from __future__ import annotations

import errno
from signal import Signals
from typing import ClassVar

from srearena.cluster.embedded.machine.images.image_names import ImageReference
from srearena.cluster.embedded.machine.networking.sockets import Connection, HttpResponse, Listener
from srearena.cluster.embedded.machine.processes.accounts import Account
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.datastores.dialogue import Dialogue
from srearena.cluster.embedded.programs.datastores.mongodb import storage
from srearena.cluster.embedded.programs.datastores.mongodb.access import Role, User
from srearena.cluster.embedded.programs.datastores.mongodb.commands import run as run_command
from srearena.cluster.embedded.programs.datastores.mongodb.journal import Journal
from srearena.cluster.embedded.programs.datastores.mongodb.options import (
    Options,
    OptionsError,
    read_options,
    tls_usable,
)
from srearena.cluster.embedded.programs.datastores.mongodb.server import MongoServer
from srearena.cluster.embedded.programs.datastores.mongodb.shell import MongoShell
from srearena.cluster.embedded.programs.datastores.mongodb.statistics_tools import StatisticsTool
from srearena.cluster.embedded.programs.datastores.mongodb.values import packed, unpacked
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.root_filesystem import Folder

START_SECONDS = 0.8
COMMAND_COST = 0.0002
SCRIPTS = "/docker-entrypoint-initdb.d"
_LOST = "It looks like you are trying to access MongoDB over HTTP on the native driver port.\r\n"
_DAEMONS = (
    *("/usr/local/bin/docker-entrypoint.sh", "/usr/bin/mongod"),
    *("/usr/bin/mongostat", "/usr/bin/mongotop"),
)
"""The server, and the tools for its statistics, which the images bring since 4.4 in a package of their own."""


_WT_ERROR = "WT_ERROR: non-specific WiredTiger error"
_REPAIR_HINT = (
    "Please read the documentation for starting MongoDB with --repair here: http://dochub.mongodb.org/core/repair"
)


@program("mongo", "mongodb", "bitnami/mongodb", "mongodb/mongodb-community-server")
class Mongo(Program):
    entrypoint = ("docker-entrypoint.sh",)
    cmd = ("mongod",)
    base = "ubuntu"
    ports = (27017,)
    binaries: ClassVar[tuple[str, ...]] = (*_DAEMONS, "/usr/bin/mongosh")
    accounts_added = (Account("mongodb", 999, 999, "/data/db"),)
    folders: ClassVar = {
        "/data/db": Folder(0o755, 999, 999),
        "/data/configdb": Folder(0o755, 999, 999),
        SCRIPTS: Folder(),
    }
    threads = 34
    idle_cpu = 0.004
    idle_writes = 1100.0  # the interim file of diagnostic.data, every ten seconds
    idle_memory = 90 * 1024 * 1024
    default_version = "8.0.15"

    def __new__(cls, reference: ImageReference) -> Mongo:
        """Images up to 4.4 bring the old shell, 5.0 both, later ones mongosh."""
        release = reference.version.split(".") if reference.version else ["8"]
        if int(release[0]) < 5:
            return object.__new__(_WithOldShell)
        return object.__new__(_WithBothShells if release[0] == "5" else cls)

    async def run(self, process: Process) -> int:
        if process.binary in ("mongostat", "mongotop"):
            return await StatisticsTool(process).run()
        if process.binary in ("mongosh", "mongo"):
            return await MongoShell(process, self.version).run()
        words = process.argv[1:]
        entry = process.binary == "docker-entrypoint.sh"
        if entry and words and words[0] != "mongod" and not words[0].startswith("-"):
            process.execute(words, process.env)
        try:
            options = read_options(process, words)
        except OptionsError as error:
            await process.error(str(error))
            return 2 if "opening config" in str(error) else 1
        if entry:
            status = await self._initialise(process, options)
            if status:
                return status
            if process.argv[0] != "mongod":
                process.argv = ["mongod", *[word for word in words if word != "mongod"]]
        return await self._server(process, options)

    # --- first start -------------------------------------------------------------------------------------------

    async def _initialise(self, process: Process, options: Options) -> int:
        """What the entry point does with an empty data directory: a server for itself, users, scripts."""
        name = process.env.get("MONGO_INITDB_ROOT_USERNAME", "")
        password = process.env.get("MONGO_INITDB_ROOT_PASSWORD", "")
        if bool(name) != bool(password):
            await process.error(
                "error: missing 'MONGO_INITDB_ROOT_USERNAME' or 'MONGO_INITDB_ROOT_PASSWORD'\n"
                "       both must be specified for a user to be created\n"
            )
            return 1
        scripts = self._scripts(process)
        if name:
            options.auth = True
        if not (scripts or name) or not storage.is_empty(process, options.folder):
            return 0
        alone = Options(port=options.port, folder=options.folder, address="127.0.0.1")
        started = await self._start(process, alone)
        if isinstance(started, int):
            return started
        server, listener = started
        if name:
            server.contents.users[("admin", name)] = User(name, "admin", password, [Role("root", "admin")])
            server.changed(access=True)
            await process.write("Successfully added user\n")
        for script in scripts:
            await process.write(f"/usr/local/bin/docker-entrypoint.sh: running {script}\n")
            child = process.spawn(self._runner(process, script), env=process.env)
            status = await process.wait(child)
            if status:
                return status
        listener.close()
        server.flush()
        Journal(process).line(23138, "CONTROL", "Shutting down", "SignalHandler", exitCode=0)
        await process.write("\nMongoDB init process complete; ready for start up.\n\n")
        return 0

    @staticmethod
    def _scripts(process: Process) -> list[str]:
        if not process.files.is_dir(SCRIPTS):
            return []
        names = [name for name in sorted(process.files.listdir(SCRIPTS)) if name.endswith((".sh", ".js"))]
        return [f"{SCRIPTS}/{name}" for name in names]

    def _runner(self, process: Process, script: str) -> list[str]:
        if script.endswith(".sh"):
            return ["bash", script]
        shell = "mongo" if "/usr/bin/mongo" in self.binaries else "mongosh"
        return [shell, "--quiet", process.env.get("MONGO_INITDB_DATABASE", "test"), script]

    # --- mongod ------------------------------------------------------------------------------------------------

    async def _server(self, process: Process, options: Options) -> int:
        stop = process.catch(Signals.SIGTERM, Signals.SIGINT)
        started = await self._start(process, options)
        if isinstance(started, int):
            return started
        server, listener = started
        await stop.wait()
        listener.close()
        journal = server.journal
        caught = Signals(stop.value)
        journal.line(23377, "CONTROL", "Received signal", "SignalHandler", signal=stop.value, error=caught.name)
        journal.line(4784900, "REPL", "Stepping down the ReplicationCoordinator for shutdown", "SignalHandler")
        server.flush()
        journal.line(20565, "CONTROL", "Now exiting", "SignalHandler")
        journal.line(23138, "CONTROL", "Shutting down", "SignalHandler", exitCode=0)
        return 0

    async def _start(self, process: Process, options: Options) -> tuple[MongoServer, Listener] | int:
        """Open the data directory and the port; the exit code where that fails."""
        journal = Journal(process)
        if not tls_usable(process, options):
            return 1
        journal.line(
            4615611,
            "CONTROL",
            "MongoDB starting",
            pid=process.pid,
            port=options.port,
            dbPath=options.folder,
            architecture="64-bit",
            host=process.container.host.hostname,
        )
        journal.line(23403, "CONTROL", "Build Info", buildInfo={"version": self.version})
        if options.repair:
            return await self._repair(process, options.folder, journal)
        contents = self._open(process, options.folder, journal)
        if isinstance(contents, int):
            return contents
        await process.sleep(START_SECONDS)
        if not options.auth:
            text = "Access control is not enabled for the database. Read and write access to data and configuration is "
            journal.line(22120, "CONTROL", f"{text}unrestricted", severity="W", tags=["startupWarnings"])
        process.set_memory(self.idle_memory)
        server = MongoServer(
            process,
            contents,
            version=self.version,
            folder=options.folder,
            port=options.port,
            auth=options.auth,
            tls=options.tls,
        )

        async def serve(connection: Connection) -> None:
            await self._converse(server, connection)

        try:
            listener = process.container.namespace.listen(process, options.port, address=options.address, stream=serve)
        except OSError as error:
            text = f"SocketException: {error.strerror}"
            journal.line(23024, "CONTROL", "Failed to set up listener", severity="E", error=text)
            journal.line(23138, "CONTROL", "Shutting down", exitCode=48)
            return 48
        listener.server = server
        journal.line(23015, "NETWORK", "Listening on", "listener", address=options.address)
        tls = "off" if options.tls == "disabled" else "on"
        journal.line(23016, "NETWORK", "Waiting for connections", "listener", port=options.port, ssl=tls)
        return server, listener

    async def _repair(self, process: Process, folder: str, journal: Journal) -> int:
        journal.line(22271, "STORAGE", "Detected unclean shutdown - Lock file is not empty", lockFile="mongod.lock")
        await process.sleep(START_SECONDS)
        try:
            done = storage.repair(process, folder, self.version)
        except OSError as error:
            reason = f"Location28595: {error.errno}: {error.strerror}"
            journal.line(20557, "CONTROL", "DBException in initAndListen, terminating", severity="E", error=reason)
            return 100
        for file in [*done.salvaged, *done.lost]:
            uri = f"table:{file.removesuffix('.wt')}"
            journal.line(22361, "STORAGE", "Verify failed. Running a salvage operation.", uri=uri)
            if file in done.lost:
                text = "Salvage failed. The file will be moved out of the way and a new ident will be created."
                journal.line(22357, "STORAGE", text, severity="W", uri=uri)
                backup = f"{folder}/{file}.corrupt"
                journal.line(22352, "STORAGE", "Moving data file to backup", severity="W", file=file, backup=backup)
                journal.line(22353, "STORAGE", "Rebuilding ident", severity="W", ident=file.removesuffix(".wt"))
        for namespace in done.orphans:
            text = "Successfully created an entry in the catalog for the orphaned collection"
            journal.line(22250, "STORAGE", text, namespace=namespace)
        journal.line(20530, "STORAGE", "Finished checking dbs")
        journal.line(20565, "CONTROL", "Now exiting")
        journal.line(23138, "CONTROL", "Shutting down", exitCode=0)
        return 0

    def _open(self, process: Process, folder: str, journal: Journal) -> storage.Contents | int:
        release = storage.release_of(self.version)
        try:
            process.files.mkdir(folder, 0o755, parents=True)
            process.files.write_bytes(f"{folder}/mongod.lock", f"{process.pid}\n".encode())
            contents = storage.load(process, folder, self.version)
            if contents.compatibility in storage.expected(release):
                storage.save(process, folder, contents)
        except OSError as error:
            reason = f"IllegalOperation: Attempted to create a lock file on a read-only directory: {folder}"
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                # WiredTiger names its errors so: the number, then what the system calls it.
                reason = f"Location28595: {error.errno}: {error.strerror}"
            journal.line(20557, "CONTROL", "DBException in initAndListen, terminating", severity="E", error=reason)
            journal.line(23138, "CONTROL", "Shutting down", exitCode=100)
            return 100
        except storage.Damaged as damage:
            text = f"file:{damage.file}, WT_SESSION.open_cursor: {damage.why}"
            journal.line(22435, "WT", "WiredTiger error message", severity="E", error=-31802, message=text)
            journal.line(
                50882,
                "STORAGE",
                "Failed to open WiredTiger cursor. This may be due to data corruption",
                severity="E",
                uri=f"table:{damage.file.removesuffix('.wt')}",
                error={"code": 8, "codeName": "UnknownError", "errmsg": f"-31802: {_WT_ERROR}"},
                message=_REPAIR_HINT,
            )
            journal.line(23095, "-", "Fatal assertion", severity="F", msgid=50882, error=f"-31802: {_WT_ERROR}")
            journal.line(23096, "-", "\n\n***aborting after fassert() failure\n\n", severity="F")
            return 14
        if contents.compatibility not in storage.expected(release):
            text = storage.complaint(contents.compatibility, release)
            journal.line(20573, "CONTROL", "Wrong mongod version", severity="F", error=text)
            journal.line(20565, "CONTROL", "Now exiting")
            journal.line(23138, "CONTROL", "Shutting down", exitCode=storage.NEED_OTHER_VERSION)
            return storage.NEED_OTHER_VERSION
        return contents

    @staticmethod
    async def _converse(server: MongoServer, connection: Connection) -> None:
        first = await connection.read()
        if first.split(b" ")[0] in (b"GET", b"POST", b"HEAD"):
            await connection.write(HttpResponse.text(_LOST).encode())
            return
        dialogue = Dialogue.opened(connection, first, "mongodb")
        here = connection.local[0].startswith("127.")
        session = server.accept(f"{'127.0.0.1' if here else connection.peer[0]}:{connection.peer[1]}")
        try:
            if dialogue is None:
                # A real driver: it is heard out, but its protocol is not spoken here.
                while await connection.read():
                    await server.process.spend()
                return
            if server.tls == "requireTLS":
                return
            while (message := await dialogue.hear()) is not None:
                await server.process.spend(COMMAND_COST)
                reply = run_command(server, session, str(message["db"]), unpacked(message["command"]))
                await dialogue.say(packed(reply))
        finally:
            server.leave(session)


class _WithOldShell(Mongo):
    binaries = (*_DAEMONS, "/usr/bin/mongo")


class _WithBothShells(Mongo):
    binaries = (*_DAEMONS, "/usr/bin/mongo", "/usr/bin/mongosh")
