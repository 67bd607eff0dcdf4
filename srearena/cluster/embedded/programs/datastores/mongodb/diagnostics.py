"""Commands with which operators look into a server: serverStatus, currentOp, profile, explain, collStats and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srearena.cluster.embedded.programs.datastores.mongodb.command_errors import CommandError
from srearena.cluster.embedded.programs.datastores.mongodb.documents import Document, matches
from srearena.cluster.embedded.programs.datastores.mongodb.operations import (
    command_of,
    plan_summary,
    running_operations,
)
from srearena.cluster.embedded.programs.datastores.mongodb.server import MongoServer, Session
from srearena.cluster.embedded.programs.datastores.mongodb.values import Long, Moment

Reply = dict[str, Any]
_OPCOUNTERS = {"find": "query"}


def _server_status(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    up = server.process.clock.now - server.process.started_at
    running = running_operations(server)
    writers = sum(not one.text.startswith("find") for one in running.values())
    readers = len(running) - writers
    counters = server.operation_counters()
    operations = sum(counters.values())
    return {
        "host": f"{server.process.container.host.hostname}:{server.port}",
        "version": server.version,
        "process": "mongod",
        "pid": Long(server.process.pid),
        "uptime": int(up),
        "uptimeMillis": Long(int(up * 1000)),
        "localTime": Moment(server.process.clock.now),
        "asserts": {"regular": 0, "warning": 0, "msg": 0, "user": 0, "rollovers": 0},
        "connections": {
            "current": len(server.sessions),
            "available": 838860 - len(server.sessions),
            "totalCreated": server.connected,
            "active": 1 + len(running),
        },
        "globalLock": {
            "totalTime": Long(int(up * 1e6)),
            "currentQueue": {"total": 0, "readers": 0, "writers": 0},
            "activeClients": {"total": len(running), "readers": readers, "writers": writers},
        },
        "network": {
            "bytesIn": Long(operations * 240),
            "bytesOut": Long(operations * 620),
            "numRequests": Long(operations),
        },
        "opLatencies": _latencies(server),
        "mem": {"bits": 64, "resident": server.process.memory // 1024**2, "virtual": 1500, "supported": True},
        "opcounters": counters,
        "storageEngine": {"name": "wiredTiger", "persistent": True, "readOnly": False},
        "wiredTiger": {
            "cache": {
                "maximum bytes configured": Long(256 * 1024**2),
                "bytes currently in the cache": Long(server.process.memory - server.base_memory + 90_000),
                "tracked dirty bytes in the cache": Long(0),
            },
            "concurrentTransactions": {
                "write": {"out": writers, "available": 128 - writers, "totalTickets": 128},
                "read": {"out": readers, "available": 128 - readers, "totalTickets": 128},
            },
        },
    }


def _latencies(server: MongoServer) -> Document:
    """Microseconds and operations since the start, by kind."""
    totals = {"reads": [0.0, 0.0], "writes": [0.0, 0.0]}
    for digest in server.activity.digests.values():
        total = totals["reads" if digest.sample.startswith("find") else "writes"]
        total[0] += digest.seconds * 1e6
        total[1] += digest.calls
    return {kind: {"latency": Long(int(micros)), "ops": Long(int(ops))} for kind, (micros, ops) in totals.items()}


def _current_operations(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    rows: list[Document] = []
    running = running_operations(server)
    wanted = {key: value for key, value in command.items() if key not in ("currentOp", "$all", "$ownOps", "$db")}
    for other in server.sessions.values():
        statement = running.get(other.number)
        active = other is session or statement is not None
        if not active and "$all" not in command:
            continue
        age = 0.0 if statement is None else statement.age
        row: Document = {
            "type": "op",
            "host": f"{server.process.container.host.hostname}:{server.port}",
            "desc": other.context,
            "connectionId": other.number,
            "client": other.remote,
            "active": active,
            "opid": other.number * 1000 + int(server.process.clock.now - age) % 1000,
            "secs_running": Long(int(age)),
            "microsecs_running": Long(int(age * 1e6)),
            "op": "command" if active else "none",
            "ns": "admin.$cmd.aggregate" if active else "",
        }
        if statement is not None:
            operation, _, place = statement.text.partition(" ")
            base, _, name = place.partition(".")
            command = command_of(server, operation, base, name)
            row |= {"op": _OPCOUNTERS.get(operation, operation), "ns": place, "command": command}
            if operation == "find":
                row["planSummary"] = plan_summary(server, base, name, command.get("filter") or {})
            row |= {"numYields": int(age * 100), "waitingForLock": False}
        if matches(row, wanted):
            rows.append(row)
    return {"inprog": rows}


def _kill(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    return {"info": "attempting to kill op"}


def _profile(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    before = {"was": server.profile_levels.get(database, 0), "slowms": server.slow_milliseconds, "sampleRate": 1.0}
    level = int(command["profile"])
    if level >= 0:
        server.profile_levels[database] = level
    if "slowms" in command:
        server.slow_milliseconds = int(command["slowms"])
    return before


def _explain(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    inner = command["explain"]
    name = next(iter(inner))
    if name not in ("find", "count", "aggregate", "update", "delete", "distinct"):
        raise CommandError(f"Explain failed due to unknown command: {name}", 59, "CommandNotFound")
    target = str(inner[name])
    query = inner.get("filter") or inner.get("query") or {}
    plan = plan_summary(server, database, target, query)
    documents = server.collection(database, target)
    found = [row for row in documents if matches(row, query)]
    stage: Document = {"stage": plan.split(None, 1)[0]}
    if plan.startswith("IXSCAN"):
        field = next(iter(query))
        index = next(i for i in server.contents.indexes[f"{database}.{target}"] if next(iter(i["key"])) == field)
        scan = {"stage": "IXSCAN", "keyPattern": index["key"], "indexName": index["name"], "direction": "forward"}
        stage = {"stage": "FETCH", "inputStage": scan}
    elif plan == "COLLSCAN":
        stage |= {**({"filter": query} if query else {}), "direction": "forward"}
    reply: Reply = {
        "queryPlanner": {
            "plannerVersion": 1,
            "namespace": f"{database}.{target}",
            "indexFilterSet": False,
            "parsedQuery": query,
            "winningPlan": stage,
            "rejectedPlans": [],
        }
    }
    if str(command.get("verbosity", "queryPlanner")) != "queryPlanner":
        reply["executionStats"] = {
            "executionSuccess": True,
            "nReturned": len(found),
            "executionTimeMillis": len(documents) // 20000,
            "totalKeysExamined": 0 if plan == "COLLSCAN" else len(found),
            "totalDocsExamined": len(documents) if plan == "COLLSCAN" else len(found),
        }
    host = server.process.container.host.hostname
    return {**reply, "serverInfo": {"host": host, "port": server.port, "version": server.version}}


def _collection_statistics(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    name = str(command["collStats"])
    count = server.number_of(database, name)
    kept = max(1, server.number_of_kept(database, name))
    size = int(server.size_of_collection(database, name) * count / kept)
    indexes = 1 + len(server.contents.indexes.get(f"{database}.{name}", []))
    return {
        "ns": f"{database}.{name}",
        "size": size,
        "count": count,
        "avgObjSize": size // count if count else 0,
        "storageSize": (size // 4096 + 1) * 4096,
        "capped": name == "system.profile",
        "nindexes": indexes,
        "totalIndexSize": indexes * 20480,
    }


def _top(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    server.settle()
    totals: Document = {"note": "all times in microseconds"}
    for digest in server.activity.digests.values():
        operation, _, place = digest.sample.partition(" ")
        row = totals.setdefault(place, {k: {"time": 0, "count": 0} for k in ("total", "readLock", "writeLock")})
        for kind in ("total", "readLock" if operation == "find" else "writeLock"):
            row[kind]["time"] += int(digest.seconds * 1e6)
            row[kind]["count"] += int(digest.calls)
    return {"totals": totals}


def _log_lines(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    if command["getLog"] == "*":
        return {"names": ["global", "startupWarnings"]}
    if command["getLog"] not in ("global", "startupWarnings"):
        raise CommandError(f"No log named '{command['getLog']}'", 96, "OperationFailed")
    lines = server.process.container.log.text().splitlines()
    if command["getLog"] == "startupWarnings":
        lines = [line for line in lines if "startupWarnings" in line]
    return {"totalLinesWritten": len(lines), "log": lines[-1024:]}


def _host(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    kernel = server.process.container.host.kernel
    system = {"hostname": f"{server.process.container.host.hostname}:{server.port}", "cpuAddrSize": 64}
    return {
        "system": {**system, "currentTime": Moment(server.process.clock.now), "numCores": int(kernel.cpus)},
        "os": {"type": "Linux", "name": "Ubuntu", "version": "22.04"},
        "extra": {},
    }


def _validate(server: MongoServer, session: Session, database: str, command: Document) -> Reply:
    name = str(command["validate"])
    if name not in server.contents.databases.get(database, {}):
        raise CommandError(f"Collection '{database}.{name}' does not exist to validate.", 26, "NamespaceNotFound")
    count = server.number_of_kept(database, name)
    return {
        "ns": f"{database}.{name}",
        "nInvalidDocuments": 0,
        "nrecords": count,
        "nIndexes": 1 + len(server.contents.indexes.get(f"{database}.{name}", [])),
        "keysPerIndex": {"_id_": count},
        "valid": True,
        "repaired": False,
        "warnings": [],
        "errors": [],
    }


DIAGNOSTICS: dict[str, Callable[[MongoServer, Session, str, Document], Reply]] = {
    "serverStatus": _server_status,
    "currentOp": _current_operations,
    "killOp": _kill,
    "profile": _profile,
    "explain": _explain,
    "collStats": _collection_statistics,
    "top": _top,
    "getLog": _log_lines,
    "hostInfo": _host,
    "validate": _validate,
}
