"""The objects a MongoDB shell offers: `db`, its collections, cursors, `rs`, and the constructors of values.

Each method makes a command and sends it (`Sender`); what differs between the old shell and mongosh is what a method
returns, and is decided here by `modern`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from srearena.cluster.embedded.programs.datastores.mongodb.evaluation import Evaluator, failure
from srearena.cluster.embedded.programs.datastores.mongodb.members import Function, Host, number
from srearena.cluster.embedded.programs.datastores.mongodb.values import UNDEFINED, Long, legacy

Document = dict[str, Any]
Sender = Callable[[str, Document], Awaitable[Document]]
BATCH = 20


class Shell(Host):
    """What the objects share: the way to the server, and which shell this is."""

    def __init__(self, send: Sender, evaluator: Evaluator, write: Callable[[str], Awaitable[None]], *, modern: bool):
        self.send = send
        self.evaluator = evaluator
        self.write = write
        self.modern = modern

    async def command(self, database: str, command: Document, prefix: str = "") -> Document:
        """Send it; a refusal is thrown, as helpers do."""
        reply = await self.send(database, command)
        if reply.get("ok") == 1:
            return reply
        text = str(reply.get("errmsg", ""))
        if self.modern:
            raise failure(text, f"MongoServerError[{reply.get('codeName', '')}]", code=reply.get("code"))
        raise failure(f"{prefix}{text}", "Error", code=reply.get("code"), codeName=reply.get("codeName"))


class Database(Host):
    def __init__(self, shell: Shell, name: str) -> None:
        self.shell = shell
        self.name = name

    def get(self, name: str) -> Any:
        method = getattr(self, f"do_{name}", None)
        return method if method is not None else Collection(self, name)

    async def display(self) -> Any:
        return self.name

    async def _admin(self, command: Document) -> Document:
        return await self.shell.command("admin", command)

    async def _acknowledged(self, reply: Document, old: Any) -> Any:
        return reply if self.shell.modern else old

    async def do_getName(self) -> Any:
        return self.name

    async def do_getSiblingDB(self, name: str) -> Any:
        return Database(self.shell, name)

    do_getSisterDB = do_getSiblingDB

    async def do_getCollection(self, name: str) -> Any:
        return Collection(self, name)

    async def do_getCollectionNames(self) -> Any:
        reply = await self.shell.command(self.name, {"listCollections": 1})
        return [row["name"] for row in reply["cursor"]["firstBatch"]]

    async def do_getMongo(self) -> Any:
        return {"getDBNames": self._names, "host": "127.0.0.1:27017"}

    async def _names(self) -> Any:
        return [row["name"] for row in (await self._admin({"listDatabases": 1}))["databases"]]

    async def do_runCommand(self, command: Any) -> Any:
        wanted = {command: 1} if isinstance(command, str) else command
        if self.shell.modern:
            return await self.shell.command(self.name, wanted)
        return await self.shell.send(self.name, wanted)

    async def do_adminCommand(self, command: Any) -> Any:
        return await Database(self.shell, "admin").do_runCommand(command)

    async def do_auth(self, user: Any, password: Any = "") -> Any:
        if isinstance(user, dict):
            user, password = user["user"], user["pwd"]
        reply = await self.shell.send(self.name, {"authenticate": 1, "user": user, "pwd": password, "db": self.name})
        if reply["ok"] == 1:
            return {"ok": 1} if self.shell.modern else 1
        if self.shell.modern:
            raise failure("Authentication failed.", "MongoServerError[AuthenticationFailed]")
        await self.shell.write("Error: Authentication failed.\n")
        return 0

    async def do_createUser(self, user: Document, _concern: Any = None) -> Any:
        fields = {key: value for key, value in user.items() if key != "user"}
        reply = await self.shell.command(self.name, {"createUser": user["user"], **fields}, "couldn't add user: ")
        if not self.shell.modern:
            visible = {key: value for key, value in user.items() if key != "pwd"}
            await self.shell.write(f"Successfully added user: {legacy(visible)}\n")
        return await self._acknowledged(reply, UNDEFINED)

    async def do_updateUser(self, name: str, update: Document, _concern: Any = None) -> Any:
        reply = await self.shell.command(self.name, {"updateUser": name, **update}, "Updating user failed: ")
        return await self._acknowledged(reply, UNDEFINED)

    async def do_changeUserPassword(self, name: str, password: str) -> Any:
        return await self.do_updateUser(name, {"pwd": password})

    async def do_dropUser(self, name: str, _concern: Any = None) -> Any:
        reply = await self.shell.send(self.name, {"dropUser": name})
        if reply["ok"] != 1 and reply.get("code") == 11 and not self.shell.modern:
            return False
        if reply["ok"] != 1:
            return await self.shell.command(self.name, {"dropUser": name})
        return await self._acknowledged(reply, True)

    do_removeUser = do_dropUser

    async def do_dropAllUsers(self, _concern: Any = None) -> Any:
        reply = await self.shell.command(self.name, {"dropAllUsersFromDatabase": 1})
        return await self._acknowledged(reply, reply["n"])

    async def do_grantRolesToUser(self, name: str, roles: list[Any], _concern: Any = None) -> Any:
        reply = await self.shell.command(self.name, {"grantRolesToUser": name, "roles": roles})
        return await self._acknowledged(reply, UNDEFINED)

    async def do_revokeRolesFromUser(self, name: str, roles: list[Any], _concern: Any = None) -> Any:
        reply = await self.shell.command(self.name, {"revokeRolesFromUser": name, "roles": roles})
        return await self._acknowledged(reply, UNDEFINED)

    async def do_getUsers(self, _options: Any = None) -> Any:
        reply = await self.shell.command(self.name, {"usersInfo": 1})
        return reply if self.shell.modern else reply["users"]

    async def do_getUser(self, name: str, _options: Any = None) -> Any:
        users = (await self.shell.command(self.name, {"usersInfo": name}))["users"]
        return users[0] if users else None

    async def do_logout(self) -> Any:
        return await self.shell.command(self.name, {"logout": 1})

    async def do_createCollection(self, name: str, _options: Any = None) -> Any:
        return await self.shell.command(self.name, {"create": name})

    async def do_dropDatabase(self) -> Any:
        return await self.shell.command(self.name, {"dropDatabase": 1})

    async def do_serverStatus(self, _options: Any = None) -> Any:
        return await self._admin({"serverStatus": 1})

    async def do_serverBuildInfo(self) -> Any:
        return await self._admin({"buildInfo": 1})

    async def do_version(self) -> Any:
        return (await self._admin({"buildInfo": 1}))["version"]

    async def do_stats(self, _scale: Any = None) -> Any:
        return await self.shell.command(self.name, {"dbStats": 1})

    async def do_hello(self) -> Any:
        return await self._admin({"hello": 1})

    async def do_isMaster(self) -> Any:
        return await self._admin({"isMaster": 1})

    async def do_currentOp(self, filters: Any = None) -> Any:
        options = filters if isinstance(filters, dict) else {"$all": True} if filters else {}
        return await self._admin({"currentOp": 1, **options})

    async def do_killOp(self, operation: Any) -> Any:
        return await self._admin({"killOp": 1, "op": operation})

    async def do_setProfilingLevel(self, level: Any, options: Any = None) -> Any:
        settings = {"slowms": options} if isinstance(options, int | float) else options or {}
        return await self.shell.command(self.name, {"profile": level, **settings})

    async def do_getProfilingStatus(self) -> Any:
        return await self.shell.command(self.name, {"profile": -1})

    async def do_hostInfo(self) -> Any:
        return await self._admin({"hostInfo": 1})

    async def do_shutdownServer(self, _options: Any = None) -> Any:
        return await self.shell.command(self.name, {"shutdown": 1})


class Collection(Host):
    def __init__(self, database: Database, name: str) -> None:
        self.database = database
        self.shell = database.shell
        self.name = name

    def get(self, name: str) -> Any:
        method = getattr(self, f"do_{name}", None)
        return method if method is not None else Collection(self.database, f"{self.name}.{name}")

    async def display(self) -> Any:
        return f"{self.database.name}.{self.name}"

    async def _run(self, command: Document) -> Document:
        return await self.shell.command(self.database.name, command)

    async def _written(self, command: Document) -> Document:
        reply = await self._run(command)
        for error in reply.get("writeErrors", ()):
            name = "MongoServerError" if self.shell.modern else "WriteError"
            raise failure(str(error["errmsg"]), name, code=error["code"])
        return reply

    async def do_find(self, query: Any = None, projection: Any = None) -> Any:
        chosen = {"projection": projection} if projection else {}
        return Cursor(self, {"find": self.name, "filter": query or {}, **chosen})

    async def do_findOne(self, query: Any = None, projection: Any = None) -> Any:
        command = {"find": self.name, "filter": query or {}, "projection": projection or {}, "limit": 1}
        return next(iter((await self._run(command))["cursor"]["firstBatch"]), None)

    async def do_aggregate(self, *stages: Any) -> Any:
        pipeline = stages[0] if stages and isinstance(stages[0], list) else list(stages)
        return Cursor(self, {"aggregate": self.name, "pipeline": pipeline, "cursor": {}})

    async def do_countDocuments(self, query: Any = None) -> Any:
        return (await self._run({"count": self.name, "query": query or {}}))["n"]

    do_count = do_countDocuments
    do_estimatedDocumentCount = do_countDocuments

    async def do_distinct(self, key: str, query: Any = None) -> Any:
        return (await self._run({"distinct": self.name, "key": key, "query": query or {}}))["values"]

    async def do_insertOne(self, document: Document, _options: Any = None) -> Any:
        await self._written({"insert": self.name, "documents": [document]})
        return {"acknowledged": True, "insertedId": await self._newest()}

    async def _newest(self) -> Any:
        reply = await self.shell.send(self.database.name, {"find": self.name})
        return reply["cursor"]["firstBatch"][-1]["_id"] if reply.get("ok") == 1 else None

    async def do_insertMany(self, documents: list[Document], _options: Any = None) -> Any:
        reply = await self._written({"insert": self.name, "documents": documents})
        rows = (await self._run({"find": self.name}))["cursor"]["firstBatch"][-reply["n"] :]
        names = {str(index): row["_id"] for index, row in enumerate(rows)}
        return {"acknowledged": True, "insertedIds": names if self.shell.modern else list(names.values())}

    async def do_insert(self, documents: Any, _options: Any = None) -> Any:
        many = documents if isinstance(documents, list) else [documents]
        reply = await self._written({"insert": self.name, "documents": many})
        return {"nInserted": reply["n"]}

    async def _update(self, query: Document, update: Document, options: Any, *, multi: bool) -> Document:
        upsert = bool(options and options.get("upsert"))
        change = {"q": query, "u": update, "multi": multi, "upsert": upsert}
        reply = await self._written({"update": self.name, "updates": [change]})
        upserted = reply.get("upserted", [])
        return {
            "acknowledged": True,
            **({"insertedId": upserted[0]["_id"] if upserted else None} if self.shell.modern else {}),
            "matchedCount": reply["n"] - len(upserted),
            "modifiedCount": reply["nModified"],
            **({"upsertedCount": len(upserted)} if self.shell.modern else {}),
        }

    async def do_updateOne(self, query: Document, update: Document, options: Any = None) -> Any:
        return await self._update(query, update, options, multi=False)

    do_replaceOne = do_updateOne

    async def do_updateMany(self, query: Document, update: Document, options: Any = None) -> Any:
        return await self._update(query, update, options, multi=True)

    async def do_update(self, query: Document, update: Document, options: Any = None) -> Any:
        multi = bool(options and options.get("multi"))
        done = await self._update(query, update, options, multi=multi)
        return {"nMatched": done["matchedCount"], "nUpserted": 0, "nModified": done["modifiedCount"]}

    async def do_deleteOne(self, query: Document, _options: Any = None) -> Any:
        reply = await self._written({"delete": self.name, "deletes": [{"q": query, "limit": 1}]})
        return {"acknowledged": True, "deletedCount": reply["n"]}

    async def do_deleteMany(self, query: Document, _options: Any = None) -> Any:
        reply = await self._written({"delete": self.name, "deletes": [{"q": query, "limit": 0}]})
        return {"acknowledged": True, "deletedCount": reply["n"]}

    async def do_remove(self, query: Any = None, one: Any = None) -> Any:
        reply = await self._written({"delete": self.name, "deletes": [{"q": query or {}, "limit": 1 if one else 0}]})
        return {"nRemoved": reply["n"]}

    async def do_drop(self, _options: Any = None) -> Any:
        reply = await self.shell.send(self.database.name, {"drop": self.name})
        if reply["ok"] != 1 and reply.get("code") != 26:
            await self._run({"drop": self.name})
        return reply["ok"] == 1

    async def do_createIndex(self, keys: Document, options: Any = None) -> Any:
        name = "_".join(f"{key}_{number(value)}" for key, value in keys.items())
        index = {"key": keys, "name": name, **(options or {})}
        reply = await self._run({"createIndexes": self.name, "indexes": [index]})
        return index["name"] if self.shell.modern else reply

    do_ensureIndex = do_createIndex

    async def do_getIndexes(self) -> Any:
        return (await self._run({"listIndexes": self.name}))["cursor"]["firstBatch"]

    async def do_stats(self, _scale: Any = None) -> Any:
        return await self._run({"collStats": self.name})

    async def do_validate(self, _options: Any = None) -> Any:
        return await self._run({"validate": self.name})

    async def do_explain(self, verbosity: Any = "queryPlanner") -> Any:
        return _Explained(self, str(verbosity))


class _Explained(Host):
    """`db.collection.explain().find(...)`."""

    def __init__(self, collection: Collection, verbosity: str) -> None:
        self.collection = collection
        self.verbosity = verbosity

    def get(self, name: str) -> Any:
        return self._find if name in ("find", "count") else UNDEFINED

    async def _find(self, query: Any = None, _projection: Any = None) -> Any:
        return await Cursor(self.collection, {"find": self.collection.name, "filter": query or {}}).do_explain(
            self.verbosity
        )


class Cursor(Host):
    """Asks when its rows are first needed."""

    def __init__(self, collection: Collection, command: Document) -> None:
        self.collection = collection
        self.command = command
        self.rows: list[Any] | None = None

    def get(self, name: str) -> Any:
        if name in ("sort", "limit", "skip"):
            return self._setting(name)
        return getattr(self, f"do_{name}", UNDEFINED)

    def _setting(self, name: str) -> Function:
        async def apply(value: Any) -> Any:
            self.command[name] = value
            return self

        return apply

    async def _all(self) -> list[Any]:
        if self.rows is None:
            shell, database = self.collection.shell, self.collection.database.name
            reply = await shell.send(database, self.command)
            if reply.get("ok") != 1 and not shell.modern:
                raise failure(f"error: {legacy(reply)}", "Error", code=reply.get("code"))
            if reply.get("ok") != 1:
                reply = await shell.command(database, self.command)
            self.rows = reply["cursor"]["firstBatch"]
        return self.rows

    async def display(self) -> Any:
        return await self._all()

    async def do_toArray(self) -> Any:
        return list(await self._all())

    async def do_explain(self, verbosity: Any = "queryPlanner") -> Any:
        shell, database = self.collection.shell, self.collection.database.name
        level = "executionStats" if verbosity is True else str(verbosity)
        return await shell.command(database, {"explain": self.command, "verbosity": level})

    async def do_pretty(self) -> Any:
        return self

    async def do_count(self) -> Any:
        return len(await self._all())

    do_size = do_count

    async def do_hasNext(self) -> Any:
        return bool(await self._all())

    async def do_next(self) -> Any:
        rows = await self._all()
        return rows.pop(0) if rows else None

    async def do_forEach(self, function: Function) -> Any:
        for row in list(await self._all()):
            await function(row)
        return UNDEFINED

    async def do_map(self, function: Function) -> Any:
        return [await function(row) for row in list(await self._all())]

    async def do_itcount(self) -> Any:
        return len(await self._all())


class ReplicaSet(Host):
    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    def get(self, name: str) -> Any:
        return {"status": self._status, "conf": self._status, "isMaster": self._hello, "hello": self._hello}.get(
            name, UNDEFINED
        )

    async def _status(self) -> Any:
        if self.shell.modern:
            return await self.shell.command("admin", {"replSetGetStatus": 1})
        return await self.shell.send("admin", {"replSetGetStatus": 1})

    async def _hello(self) -> Any:
        return await self.shell.command("admin", {"isMaster": 1})


def long_number(value: Any) -> Long:
    return Long(int(number(value)))
