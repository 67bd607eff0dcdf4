"""What psql's backslash commands list: a title, columns and rows, and lines below."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from srearena.cluster.embedded.programs.datastores.postgresql.catalogs import COMPUTED, indexes, places
from srearena.cluster.embedded.programs.datastores.postgresql.server import Database, PostgresServer

_TYPES = {"INT": "integer", "INTEGER": "integer", "TEXT": "text", "BIGINT": "bigint", "BOOL": "boolean"}


@dataclass(slots=True)
class Listing:
    title: str = ""
    columns: list[str] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    below: str = ""
    error: str = ""


def describe(server: PostgresServer, database: Database, command: str, argument: str) -> Listing:
    word = command.rstrip("+S")
    if word == "l":
        return _databases(server)
    if word in ("du", "dg"):
        roles = [(role.name, role.attributes) for role in sorted(server.roles.values(), key=lambda role: role.name)]
        return Listing("List of roles", ["Role name", "Attributes"], roles)
    if word == "dn":
        owners = database.privileges.owners
        names = sorted({"public", *(s for s in database.tables.schemas if s not in ("main", *COMPUTED))})
        rows = [(name, "pg_database_owner" if name == "public" else owners.get(f"schema:{name}", "")) for name in names]
        return Listing("List of schemas", ["Name", "Owner"], rows)
    if word in ("dt", "d") and (word == "dt" or not argument):
        return _tables(database, argument)
    if word == "d":
        return _table(database, argument)
    if word in ("dp", "z"):
        return _privileges(database, argument)
    if word == "conninfo":
        return Listing(below="")
    if word in ("di", "dv", "df", "ds", "dx", "db", "dm", "dE", "dT"):
        return _others(database, word)
    return Listing(error=f"invalid command \\{command}\nTry \\? for help.")


def _others(database: Database, word: str) -> Listing:
    """Lists of objects other than tables; only indexes and the standard extension exist."""
    if word == "dx":
        row = ("plpgsql", "1.0", "pg_catalog", "PL/pgSQL procedural language")
        return Listing("List of installed extensions", ["Name", "Version", "Schema", "Description"], [row])
    if word == "db":
        rows = [("pg_default", database.owner, None), ("pg_global", database.owner, None)]
        return Listing("List of tablespaces", ["Name", "Owner", "Location"], rows)
    if word == "df":
        columns = ["Schema", "Name", "Result data type", "Argument data types", "Type"]
        return Listing("List of functions", columns, [])
    if word == "dT":
        return Listing("List of data types", ["Schema", "Name", "Description"], [])
    found = indexes(database) if word == "di" else []
    if not found:
        return Listing(error="Did not find any relations.")
    rows_of = [(schema, name, "index", database.owner, table) for schema, table, name, *_ in found]
    return Listing("List of relations", ["Schema", "Name", "Type", "Owner", "Table"], rows_of)


def _databases(server: PostgresServer) -> Listing:
    columns = [
        "Name",
        "Owner",
        "Encoding",
        "Locale Provider",
        "Collate",
        "Ctype",
        "Locale",
        "ICU Rules",
        "Access privileges",
    ]
    facts = ("UTF8", "libc", "en_US.utf8", "en_US.utf8", None, None, None)
    rows: list[tuple[Any, ...]] = [(each.name, each.owner, *facts) for each in server.databases.values()]
    owner = next(iter(server.roles), "postgres")
    rows += [(name, owner, *facts) for name in ("template0", "template1")]
    return Listing("List of databases", columns, sorted(rows))


def _matches(pattern: str, schema: str, table: str) -> bool:
    wanted_schema, _, wanted = pattern.rpartition(".")
    fits = wanted in ("", "*", table) or (wanted.endswith("*") and table.startswith(wanted[:-1]))
    return fits and wanted_schema in ("*", schema) if wanted_schema else fits and schema == "public"


def _tables(database: Database, pattern: str) -> Listing:
    owners = database.privileges.owners
    rows = [
        (schema, table, "table", owners.get(f"{schema}.{table}", database.owner))
        for schema, table in places(database)
        if _matches(pattern, schema, table)
    ]
    if not rows:
        return Listing(
            error=f'Did not find any relation named "{pattern}".' if pattern else "Did not find any relations."
        )
    return Listing("List of relations", ["Schema", "Name", "Type", "Owner"], rows)


def _table(database: Database, name: str) -> Listing:
    schema, _, table = name.replace('"', "").rpartition(".")
    schema = schema or "public"
    if (schema, table) not in places(database):
        return Listing(error=f'Did not find any relation named "{name}".')
    place = "main" if schema == "public" else schema
    rows: list[tuple[Any, ...]] = []
    keys: list[str] = []
    for column, kind, needed, default, key in database.tables.columns(place, table):
        shown = _TYPES.get(kind.upper(), kind.lower().replace("varchar", "character varying"))
        rows.append((column, shown, None, "not null" if needed or key else None, default))
        if key:
            keys.append(column)
    below = f'Indexes:\n    "{table}_pkey" PRIMARY KEY, btree ({", ".join(keys)})\n' if keys else ""
    columns = ["Column", "Type", "Collation", "Nullable", "Default"]
    return Listing(f'Table "{schema}.{table}"', columns, rows, below)


def _privileges(database: Database, pattern: str) -> Listing:
    letters = {
        "INSERT": "a",
        "SELECT": "r",
        "UPDATE": "w",
        "DELETE": "d",
        "TRUNCATE": "D",
        "REFERENCES": "x",
        "TRIGGER": "t",
    }
    rows: list[tuple[Any, ...]] = []
    for schema, table in places(database):
        if not _matches(pattern, schema, table) and pattern:
            continue
        owner = database.privileges.owners.get(f"{schema}.{table}", database.owner)
        granted = database.privileges.granted.get(f"{schema}.{table}", {})
        lines = [f"{owner}=arwdDxt/{owner}"] if granted else []
        lines += [
            f"{'' if role == 'public' else role}={''.join(v for k, v in letters.items() if k in privileges)}/{owner}"
            for role, privileges in granted.items()
            if privileges
        ]
        rows.append((schema, table, "table", "\n".join(lines)))
    return Listing("Access privileges", ["Schema", "Name", "Type", "Access privileges"], rows)
