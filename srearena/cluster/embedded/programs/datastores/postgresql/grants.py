"""Commands about roles, privileges, schemas and databases: patterns and what each does; each returns its tag."""

from __future__ import annotations

import re
from collections.abc import Callable

from srearena.cluster.embedded.programs.datastores.postgresql.errors import SqlError
from srearena.cluster.embedded.programs.datastores.postgresql.roles import SCHEMA_PRIVILEGES, TABLE_PRIVILEGES, Role
from srearena.cluster.embedded.programs.datastores.postgresql.server import COMPUTED, Database, PostgresServer, Session
from srearena.cluster.embedded.programs.datastores.sql.engine import TableError
from srearena.cluster.embedded.programs.datastores.sql.statements import literal, unquoted

Command = Callable[[PostgresServer, Session, re.Match[str]], str]
_NAME = r"(\"[^\"]+\"|[\w-]+)"
_SWITCHES = {"SUPERUSER": "superuser", "LOGIN": "login", "CREATEDB": "create_database", "CREATEROLE": "create_role"}


def _may(server: PostgresServer, session: Session, attribute: str, text: str) -> None:
    role = server.roles.get(session.user)
    if role is not None and (role.superuser or getattr(role, attribute)):
        return
    raise SqlError("42501", text)


def _apply(role: Role, options: str) -> None:
    found = re.search(r"PASSWORD\s+('(?:[^']|'')*'|NULL)", options, re.IGNORECASE)
    if found is not None:
        role.password = "" if found.group(1).upper() == "NULL" else literal(found.group(1))
    rest = re.sub(r"'(?:[^']|'')*'", "", options).upper()
    for word in re.findall(r"\w+", rest):
        name = _SWITCHES.get(word.removeprefix("NO"))
        if name is not None:
            setattr(role, name, not word.startswith("NO"))


def _role(server: PostgresServer, name: str) -> Role:
    role = server.roles.get(unquoted(name))
    if role is None:
        raise SqlError("42704", f'role "{unquoted(name)}" does not exist')
    return role


def _create_role(server: PostgresServer, session: Session, found: re.Match[str]) -> str:
    kind, name, options = found.group(1).upper(), unquoted(found.group(2)), found.group(3)
    _may(server, session, "create_role", "permission denied to create role")
    if name in server.roles:
        raise SqlError("42710", f'role "{name}" already exists')
    role = Role(name, login=kind == "USER")
    _apply(role, options)
    server.roles[name] = role
    return "CREATE ROLE"


def _alter_role(server: PostgresServer, session: Session, found: re.Match[str]) -> str:
    role = _role(server, session.user if found.group(2).lower() == "current_user" else found.group(2))
    if role.name != session.user:
        _may(server, session, "create_role", "permission denied to alter role")
    renamed = re.match(rf"\s*RENAME\s+TO\s+{_NAME}", found.group(3), re.IGNORECASE)
    if renamed is not None:
        server.roles[unquoted(renamed.group(1))] = role
        del server.roles[role.name]
        role.name = unquoted(renamed.group(1))
    else:
        _apply(role, found.group(3))
    return "ALTER ROLE"


def _drop_role(server: PostgresServer, session: Session, found: re.Match[str]) -> str:
    _may(server, session, "create_role", "permission denied to drop role")
    for name in found.group(3).split(","):
        plain = unquoted(name.strip())
        if plain in server.roles:
            owned = [
                thing
                for base in server.databases.values()
                for thing, owner in base.privileges.owners.items()
                if owner == plain
            ]
            if owned:
                detail = f"owner of {owned[0]}"
                raise SqlError(
                    "2BP01", f'role "{plain}" cannot be dropped because some objects depend on it', detail=detail
                )
            del server.roles[plain]
        elif not found.group(2):
            raise SqlError("42704", f'role "{plain}" does not exist')
    return "DROP ROLE"


def _objects(database: Database, text: str) -> tuple[str, list[str]]:
    """What a grant is about: its kind and the names of the objects."""
    everything = re.match(r"ALL\s+(TABLES|SEQUENCES|FUNCTIONS)\s+IN\s+SCHEMA\s+(.+)", text, re.IGNORECASE)
    if everything is not None:
        if everything.group(1).upper() != "TABLES":
            return "none", []
        names: list[str] = []
        for schema in [unquoted(part.strip()) for part in everything.group(2).split(",")]:
            if schema != "public" and schema not in database.tables.schemas:
                raise SqlError("3F000", f'schema "{schema}" does not exist')
            place = "main" if schema == "public" else schema
            names += [f"{schema}.{table}" for table in database.tables.tables(place)]
        return "table", names
    kind = re.match(r"(SCHEMA|DATABASE|SEQUENCE|FUNCTION|TABLE)\s+", text, re.IGNORECASE)
    word = kind.group(1).lower() if kind is not None else "table"
    rest = text[kind.end() :] if kind is not None else text
    parts = [".".join(unquoted(piece) for piece in name.strip().split(".")) for name in rest.split(",")]
    if word == "schema":
        for name in parts:
            if name != "public" and name not in database.tables.schemas:
                raise SqlError("3F000", f'schema "{name}" does not exist')
        return "schema", [f"schema:{name}" for name in parts]
    if word == "table":
        full = [name if "." in name else f"public.{name}" for name in parts]
        for name in full:
            schema, _, table = name.partition(".")
            if table not in database.tables.tables("main" if schema == "public" else schema):
                raise SqlError("42P01", f'relation "{name.removeprefix("public.")}" does not exist')
        return "table", full
    return "none", []


def _privileges(text: str, kind: str) -> frozenset[str]:
    known = SCHEMA_PRIVILEGES if kind == "schema" else TABLE_PRIVILEGES
    words = {word.strip().upper() for word in text.split(",")}
    return known if words & {"ALL", "ALL PRIVILEGES"} else frozenset(words & known)


def _grant(server: PostgresServer, session: Session, found: re.Match[str]) -> str:
    word, privileges, about, _, names = found.groups()
    database = server.databases[session.database]
    kind, things = _objects(database, about.strip())
    role = server.roles.get(session.user)
    for name in names.split(","):
        plain = unquoted(
            re.sub(r"\s+(?:WITH GRANT OPTION|CASCADE|RESTRICT)\s*$", "", name.strip(), flags=re.IGNORECASE)
        )
        if plain.lower() != "public":
            _role(server, plain)
        for thing in things:
            owner = database.privileges.owners.get(thing, database.owner)
            if role is None or not (role.superuser or owner in server.names_of(role.name)):
                raise SqlError("42501", f"permission denied for {kind} {thing.rpartition('.')[2].rpartition(':')[2]}")
            change = database.privileges.grant if word.upper() == "GRANT" else database.privileges.revoke
            change(thing, plain.lower() if plain.lower() == "public" else plain, _privileges(privileges, kind))
    return word.upper()


def _membership(server: PostgresServer, session: Session, found: re.Match[str]) -> str:
    word, group, _, member = found.groups()
    role, of = _role(server, member), _role(server, group)
    _may(server, session, "create_role", f'permission denied to grant role "{of.name}"')
    if word.upper() == "GRANT" and of.name not in role.member_of:
        role.member_of.append(of.name)
    elif word.upper() == "REVOKE" and of.name in role.member_of:
        role.member_of.remove(of.name)
    return f"{word.upper()} ROLE"


def _defaults(server: PostgresServer, session: Session, found: re.Match[str]) -> str:
    schema, privileges, kind, name = found.groups()
    if kind.upper() == "TABLES":
        database = server.databases[session.database]
        defaults = database.privileges.defaults.setdefault(unquoted(schema or "public"), {})
        defaults.setdefault(unquoted(name), set()).update(_privileges(privileges, "table"))
    return "ALTER DEFAULT PRIVILEGES"


def _create_schema(server: PostgresServer, session: Session, found: re.Match[str]) -> str:
    database = server.databases[session.database]
    absent, name, owner = found.group(1), unquoted(found.group(2)), found.group(3)
    if name in database.tables.schemas:
        if absent:
            return "CREATE SCHEMA"
        raise SqlError("42P06", f'schema "{name}" already exists')
    try:
        database.tables.add_schema(name)
    except TableError as error:
        raise SqlError("0A000", error.text) from None
    database.privileges.owners[f"schema:{name}"] = unquoted(owner) if owner else session.user
    return "CREATE SCHEMA"


def _drop_schema(server: PostgresServer, session: Session, found: re.Match[str]) -> str:
    database = server.databases[session.database]
    name = unquoted(found.group(2))
    if name not in database.tables.schemas or name in COMPUTED:
        if found.group(1):
            return "DROP SCHEMA"
        raise SqlError("3F000", f'schema "{name}" does not exist')
    if database.tables.tables(name) and not found.group(3):
        hint = "Use DROP ... CASCADE to drop the dependent objects too."
        detail = "\n".join(f"table {name}.{table} depends on schema {name}" for table in database.tables.tables(name))
        raise SqlError(
            "2BP01", f"cannot drop schema {name} because other objects depend on it", hint=hint, detail=detail
        )
    database.tables.drop_schema(name)
    return "DROP SCHEMA"


def _create_database(server: PostgresServer, session: Session, found: re.Match[str]) -> str:
    _may(server, session, "create_database", "permission denied to create database")
    name = unquoted(found.group(1))
    if name in server.databases:
        raise SqlError("42P04", f'database "{name}" already exists')
    owner = re.search(rf"OWNER\s*=?\s*{_NAME}", found.group(2) or "", re.IGNORECASE)
    server.add_database(name, unquoted(owner.group(1)) if owner is not None else session.user)
    return "CREATE DATABASE"


def _drop_database(server: PostgresServer, session: Session, found: re.Match[str]) -> str:
    name = unquoted(found.group(2))
    if name not in server.databases:
        if found.group(1):
            return "DROP DATABASE"
        raise SqlError("3D000", f'database "{name}" does not exist')
    if any(other.database == name for other in server.sessions.values()):
        raise SqlError("55006", f'database "{name}" is being accessed by other users')
    server.databases.pop(name).tables.close()
    return "DROP DATABASE"


def _alter_system(server: PostgresServer, session: Session, found: re.Match[str]) -> str:
    _may(server, session, "superuser", f'permission denied to set parameter "{found.group(1)}"')
    value = found.group(2).strip()
    server.settings[found.group(1).lower()] = literal(value) if value.startswith("'") else value
    return "ALTER SYSTEM"


def _nothing(server: PostgresServer, session: Session, found: re.Match[str]) -> str:
    return " ".join(found.group(1).upper().split())


ROLE_COMMANDS: tuple[tuple[str, Command], ...] = (
    (rf"CREATE\s+(USER|ROLE)\s+{_NAME}(.*)$", _create_role),
    (rf"ALTER\s+(USER|ROLE)\s+{_NAME}(.*)$", _alter_role),
    (r"DROP\s+(?:USER|ROLE)()\s+(IF\s+EXISTS\s+)?(.+)$", _drop_role),
    (r"(GRANT|REVOKE)\s+(?:GRANT\s+OPTION\s+FOR\s+)?(.+?)\s+ON\s+(.+?)\s+(TO|FROM)\s+(.+)$", _grant),
    (rf"(GRANT|REVOKE)\s+{_NAME}\s+(TO|FROM)\s+{_NAME}\s*$", _membership),
    (
        rf"ALTER\s+DEFAULT\s+PRIVILEGES(?:\s+FOR\s+\w+\s+\w+)?(?:\s+IN\s+SCHEMA\s+{_NAME})?\s+GRANT\s+(.+?)\s+ON\s+(\w+)\s+TO\s+{_NAME}",
        _defaults,
    ),
    (rf"CREATE\s+SCHEMA\s+(IF\s+NOT\s+EXISTS\s+)?{_NAME}(?:\s+AUTHORIZATION\s+{_NAME})?", _create_schema),
    (rf"DROP\s+SCHEMA\s+(IF\s+EXISTS\s+)?{_NAME}(\s+CASCADE)?", _drop_schema),
    (rf"CREATE\s+DATABASE\s+{_NAME}(.*)$", _create_database),
    (rf"DROP\s+DATABASE\s+(IF\s+EXISTS\s+)?{_NAME}", _drop_database),
    (r"ALTER\s+SYSTEM\s+SET\s+([\w.]+)\s*(?:=|TO)\s*(.+)$", _alter_system),
    (r"(CREATE\s+EXTENSION|CREATE\s+SEQUENCE|ALTER\s+SEQUENCE|ALTER\s+DATABASE|ALTER\s+SCHEMA)\b", _nothing),
)
