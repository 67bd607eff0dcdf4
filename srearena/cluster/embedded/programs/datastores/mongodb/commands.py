"""The commands a MongoDB server understands (`db.runCommand`), as a table of small functions.

A command gets the server, the session, the database and its own document, and returns the reply's fields; CommandError
becomes `{ok: 0, errmsg, code, codeName}`. What the table lacks is refused as any server refuses an unknown command.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srearena.cluster.embedded.programs.datastores.datastore import Login
from srearena.cluster.embedded.programs.datastores.mongodb.access import FREE, User, roles_from
from srearena.cluster.embedded.programs.datastores.mongodb.command_errors import CommandError
from srearena.cluster.embedded.programs.datastores.mongodb.diagnostics import DIAGNOSTICS
from srearena.cluster.embedded.programs.datastores.mongodb.documents import (
    BadQuery,
    Document,
    at,
    changed,
    in_order,
    matches,
    piped,
    projected,
)
from srearena.cluster.embedded.programs.datastores.mongodb.server import MongoServer, Session
from srearena.cluster.embedded.programs.datastores.mongodb.storage import expected, release_of
from srearena.cluster.embedded.programs.datastores.mongodb.values import Long, Moment, modern

Reply = dict[str, Any]
Command = Callable[[MongoServer, Session, str, Document], Reply]


def _failed(message: str, code: int, name: str) -> Reply:
    return {"ok": 0, "errmsg": message, "code": code, "codeName": name}


def run(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    """Execute one command; never raises."""
    name = next(iter(command), "")
    if name == "authenticate":
        login = Login(str(command["user"]), str(command["pwd"]), database, str(command.get("db", database)))
        return (
            {"ok": 1}
            if server.authenticate(session, login)
            else _failed("Authentication failed.", 18, "AuthenticationFailed")
        )
    function = COMMANDS.get(name)
    server.operations["command"] += 1
    if function is None:
        return _failed(f"no such command: '{name}'", 59, "CommandNotFound")
    refusal = _forbidden(server, session, database, name, command)
    if refusal is not None:
        return refusal
    try:
        return {**function(server, session, database, command), "ok": 1}
    except (CommandError, BadQuery) as error:
        return _failed(error.message, error.code, error.name)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return _failed(f"BSON field '{name}' has a missing or mistyped argument", 14, "TypeMismatch")


def _forbidden(server: MongoServer, session: Session, database: str, name: str, command: Document) -> Reply | None:
    if not server.auth or name in FREE:
        return None
    user = server.user_of(session)
    if user is None:
        from_here = session.remote.startswith("127.0.0.1")
        if not server.contents.users and from_here and name == "createUser" and database == "admin":
            # The localhost exception: the first user can be created without authentication.
            return None
        return _failed(f"command {name} requires authentication", 13, "Unauthorized")
    if user.may(name, database) or (name == "usersInfo" and command.get("usersInfo") == user.name):
        return None
    if name == "listDatabases" and user.roles:
        return None
    shown = modern({**command, "$db": database}).replace("'", '"').replace("\n", " ")
    return _failed(f"not authorized on {database} to execute command {shown}", 13, "Unauthorized")


# --- documents -----------------------------------------------------------------------------------------------------


def _found(server: MongoServer, database: str, command: Document, name: str) -> list[Document]:
    query = command.get("filter") or command.get("query") or {}
    rows = [row for row in server.collection(database, str(command[name])) if matches(row, query)]
    if command.get("sort"):
        rows = in_order(rows, command["sort"])
    rows = rows[int(command.get("skip") or 0) :]
    limit = int(command.get("limit") or 0)
    return rows[: abs(limit)] if limit else rows


def _find(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    server.operations["query"] += 1
    rows = [projected(row, command.get("projection") or {}) for row in _found(server, database, command, "find")]
    return {"cursor": {"firstBatch": rows, "id": Long(0), "ns": f"{database}.{command['find']}"}}


def _count(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    if not any(command.get(key) for key in ("query", "filter", "limit", "skip")):
        return {"n": server.number_of(database, str(command["count"]))}
    return {"n": len(_found(server, database, command, "count"))}


def _distinct(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    values: list[Any] = []
    for row in _found(server, database, command, "distinct"):
        value = at(row, str(command["key"]))
        for item in value if isinstance(value, list) else [value]:
            if type(item) is not object and item not in values:
                values.append(item)
    return {"values": values}


def _aggregate(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    rows = piped(list(server.collection(database, str(command["aggregate"]))), command.get("pipeline", []))
    return {"cursor": {"firstBatch": rows, "id": Long(0), "ns": f"{database}.{command['aggregate']}"}}


def _insert(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    rows = server.make_collection(database, str(command["insert"]))
    added = 0
    for document in command["documents"]:
        new = {"_id": server.new_id(), **document}
        if any(row["_id"] == new["_id"] for row in rows):
            text = f"E11000 duplicate key error collection: {database}.{command['insert']} index: _id_ dup key: "
            shown = modern({"_id": new["_id"]}).replace("'", '"')
            return {"n": added, "writeErrors": [{"index": added, "code": 11000, "errmsg": text + shown}]}
        rows.append(new)
        document["_id"] = new["_id"]
        added += 1
    server.operations["insert"] += added
    server.changed()
    return {"n": added}


def _update(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    rows = server.collection(database, str(command["update"]))
    matched = modified = 0
    upserted: list[Document] = []
    for change in command["updates"]:
        hits = [index for index, row in enumerate(rows) if matches(row, change["q"])]
        for index in hits if change.get("multi") else hits[:1]:
            after = changed(rows[index], change["u"])
            matched += 1
            modified += after != rows[index]
            rows[index] = after
        if not hits and change.get("upsert"):
            plain = {key: value for key, value in change["q"].items() if not isinstance(value, dict)}
            new = changed({"_id": server.new_id(), **plain}, change["u"])
            server.make_collection(database, str(command["update"])).append(new)
            upserted.append({"index": len(upserted), "_id": new["_id"]})
            matched += 1
    server.operations["update"] += 1
    server.changed()
    return {"n": matched, **({"upserted": upserted} if upserted else {}), "nModified": modified}


def _delete(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    rows = server.collection(database, str(command["delete"]))
    removed = 0
    for order in command["deletes"]:
        hits = [row for row in rows if matches(row, order["q"])]
        for row in hits[:1] if order.get("limit") == 1 else hits:
            rows.remove(row)
            removed += 1
        if not order["q"] and order.get("limit") != 1:
            removed += server.forget_bulk(database, str(command["delete"]))
    server.operations["delete"] += 1
    server.changed()
    return {"n": removed}


def _create(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    name = str(command["create"])
    if name in server.contents.databases.get(database, {}):
        raise CommandError(f"Collection {database}.{name} already exists.", 48, "NamespaceExists")
    server.make_collection(database, name)
    server.changed()
    return {}


def _drop(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    name = str(command["drop"])
    if server.contents.databases.get(database, {}).pop(name, None) is None:
        raise CommandError("ns not found", 26, "NamespaceNotFound")
    server.forget_bulk(database, name)
    server.changed()
    return {"nIndexesWas": 1, "ns": f"{database}.{name}"}


def _drop_database(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    known = server.contents.databases.pop(database, None)
    server.forget_bulk(database)
    server.changed()
    return {"dropped": database} if known is not None else {}


def _list_collections(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    rows = [{"name": name, "type": "collection"} for name in sorted(server.contents.databases.get(database, {}))]
    return {"cursor": {"id": Long(0), "ns": f"{database}.$cmd.listCollections", "firstBatch": rows}}


def _create_indexes(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    name = str(command["createIndexes"])
    server.make_collection(database, name)
    kept = server.contents.indexes.setdefault(f"{database}.{name}", [])
    before = len(kept) + 1
    known = {index["name"] for index in kept}
    kept.extend(index for index in command["indexes"] if index["name"] not in known)
    server.changed()
    return {"numIndexesBefore": before, "numIndexesAfter": len(kept) + 1}


def _list_indexes(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    name = str(command["listIndexes"])
    rows = [{"v": 2, "key": {"_id": 1}, "name": "_id_"}]
    rows += [{"v": 2, **index} for index in server.contents.indexes.get(f"{database}.{name}", [])]
    return {"cursor": {"id": Long(0), "ns": f"{database}.{name}", "firstBatch": rows}}


# --- users ---------------------------------------------------------------------------------------------------------


def _user(server: MongoServer, database: str, name: str) -> User:
    user = server.contents.users.get((database, name))
    if user is None:
        raise CommandError(f'Could not find user "{name}" for db "{database}"', 11, "UserNotFound")
    return user


def _known(role_documents: Any, database: str) -> list[Any]:
    roles = roles_from(role_documents, database)
    for role in roles:
        if not role.known:
            raise CommandError(f"Could not find role: {role.name}@{role.database}", 31, "RoleNotFound")
    return roles


def _create_user(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    name = str(command["createUser"])
    if (database, name) in server.contents.users:
        raise CommandError(f'User "{name}@{database}" already exists', 51003, "Location51003")
    if not command.get("pwd"):
        raise CommandError(
            "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db",
            2,
            "BadValue",
        )
    user = User(name, database, str(command["pwd"]), _known(command["roles"], database))
    server.contents.users[(database, name)] = user
    server.changed(access=True)
    return {}


def _update_user(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    user = _user(server, database, str(command["updateUser"]))
    if command.get("pwd"):
        user.password = str(command["pwd"])
    if "roles" in command:
        user.roles = _known(command["roles"], database)
    server.changed(access=True)
    return {}


def _drop_user(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    name = str(command["dropUser"])
    if server.contents.users.pop((database, name), None) is None:
        raise CommandError(f"User '{name}@{database}' not found", 11, "UserNotFound")
    server.changed(access=True)
    return {}


def _drop_all_users(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    gone = [key for key in server.contents.users if key[0] == database]
    for key in gone:
        del server.contents.users[key]
    server.changed(access=True)
    return {"n": len(gone)}


def _grant(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    user = _user(server, database, str(command["grantRolesToUser"]))
    user.roles = list(dict.fromkeys([*user.roles, *_known(command["roles"], database)]))
    server.changed(access=True)
    return {}


def _revoke(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    user = _user(server, database, str(command["revokeRolesFromUser"]))
    gone = set(_known(command["roles"], database))
    user.roles = [role for role in user.roles if role not in gone]
    server.changed(access=True)
    return {}


def _users_info(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    wanted = command["usersInfo"]
    users = [user for user in server.contents.users.values() if user.database == database]
    if isinstance(wanted, dict):
        anywhere = wanted.get("forAllDBs")
        users = [
            user
            for user in server.contents.users.values()
            if anywhere or (user.name, user.database) == (wanted.get("user"), wanted.get("db", database))
        ]
    elif isinstance(wanted, str):
        users = [user for user in users if user.name == wanted]
    return {"users": [user.description() for user in users]}


def _connection_status(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    user = server.user_of(session)
    named = [] if user is None else [{"user": user.name, "db": user.database}]
    roles = [] if user is None else [role.description() for role in user.roles]
    return {"authInfo": {"authenticatedUsers": named, "authenticatedUserRoles": roles}}


def _logout(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    session.user = None
    return {}


# --- the server ----------------------------------------------------------------------------------------------------


def _databases(server: MongoServer) -> list[Document]:
    sizes = {"admin": 40960, "config": 36864, "local": 40960}
    for name in server.contents.databases:
        sizes[name] = sizes.get(name, 0) + 8192 + (server.size_of(name) // 4096 + 1) * 4096
    return [{"name": name, "sizeOnDisk": sizes[name], "empty": False} for name in sorted(sizes)]


def _list_databases(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    rows = _databases(server)
    user = server.user_of(session)
    if server.auth and user is not None and not user.may("listDatabases", "admin"):
        rows = [row for row in rows if any(role.database == row["name"] for role in user.roles)]
    return {"databases": rows, "totalSize": sum(row["sizeOnDisk"] for row in rows)}


def _hello(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    primary = "isWritablePrimary" if "hello" in command else "ismaster"
    return {
        primary: True,
        "maxBsonObjectSize": 16777216,
        "maxMessageSizeBytes": 48000000,
        "maxWriteBatchSize": 100000,
        "localTime": Moment(server.process.clock.now),
        "connectionId": session.number,
        "minWireVersion": 0,
        "maxWireVersion": 9 if server.version.startswith("4.4") else 25,
        "readOnly": False,
    }


def _build_info(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    return {"version": server.version, "gitVersion": "0" * 40, "modules": [], "bits": 64, "maxBsonObjectSize": 16777216}


def _replica_status(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    raise CommandError("not running with --replSet", 76, "NoReplicationEnabled")


def _parameter(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    if "featureCompatibilityVersion" in command:
        return {"featureCompatibilityVersion": {"version": server.contents.compatibility}}
    raise CommandError("no option found to get", 72, "InvalidOptions")


def _set_compatibility(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    wanted = str(command["setFeatureCompatibilityVersion"])
    release = release_of(server.version)
    if wanted not in expected(release):
        raise CommandError(f"Invalid feature compatibility version value '{wanted}'", 4926900, "Location4926900")
    if release >= "7.0" and not command.get("confirm"):
        text = (
            "Once you have upgraded, you will not be able to downgrade FCV without support assistance. Please re-run "
        )
        raise CommandError(
            text + "this command with 'confirm: true' to acknowledge this and continue.", 7369100, "Location7369100"
        )
    server.contents.compatibility = wanted
    server.changed()
    return {}


def _database_statistics(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    return server.statistics_of(database)


def _options(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    parsed: Document = {"net": {"bindIp": "*", "port": server.port}, "storage": {"dbPath": server.folder}}
    if server.auth:
        parsed["security"] = {"authorization": "enabled"}
    return {"argv": list(server.process.argv), "parsed": parsed}


def _shutdown(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    if database != "admin":
        raise CommandError("shutdown may only be run against the admin database.", 13, "Unauthorized")
    server.process.raise_signal(15)
    return {}


COMMANDS: dict[str, Command] = {
    "ping": lambda server, session, database, command: {},
    "find": _find,
    "count": _count,
    "distinct": _distinct,
    "aggregate": _aggregate,
    "insert": _insert,
    "update": _update,
    "delete": _delete,
    "create": _create,
    "drop": _drop,
    "dropDatabase": _drop_database,
    "listCollections": _list_collections,
    "createIndexes": _create_indexes,
    "listIndexes": _list_indexes,
    "createUser": _create_user,
    "updateUser": _update_user,
    "dropUser": _drop_user,
    "dropAllUsersFromDatabase": _drop_all_users,
    "grantRolesToUser": _grant,
    "revokeRolesFromUser": _revoke,
    "usersInfo": _users_info,
    "connectionStatus": _connection_status,
    "logout": _logout,
    "listDatabases": _list_databases,
    "hello": _hello,
    "isMaster": _hello,
    "ismaster": _hello,
    "buildInfo": _build_info,
    "buildinfo": _build_info,
    **DIAGNOSTICS,
    "replSetGetStatus": _replica_status,
    "getParameter": _parameter,
    "setFeatureCompatibilityVersion": _set_compatibility,
    "dbStats": _database_statistics,
    "getCmdLineOpts": _options,
    "shutdown": _shutdown,
}
