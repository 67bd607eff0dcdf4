"""Who may do what in a MongoDB server: users, and the roles built into it.

A user belongs to the database it was created in; a role is granted on a database. Roles that operators define
themselves are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

READ = frozenset(
    {"find", "count", "distinct", "aggregate", "listCollections", "listIndexes", "collStats", "dbStats", "dbHash"}
)
WRITE = READ | {"insert", "update", "delete", "findAndModify", "create", "drop", "createIndexes", "dropIndexes"}
ADMINISTER = frozenset(
    {"listCollections", "listIndexes", "collStats", "dbStats", "create", "drop", "dropDatabase", "createIndexes"}
    | {"dropIndexes", "profile", "collMod", "validate"}
)
USERS = frozenset(
    {"createUser", "updateUser", "dropUser", "dropAllUsersFromDatabase", "grantRolesToUser", "revokeRolesFromUser"}
    | {"usersInfo"}
)
MONITOR = frozenset(
    {"serverStatus", "currentOp", "replSetGetStatus", "getLog", "hostInfo", "listDatabases", "top", "getCmdLineOpts"}
    | {"getParameter", "connPoolStats"}
)
MANAGE = MONITOR | {"killOp", "shutdown", "setParameter", "fsync", "setFeatureCompatibilityVersion"}
FREE = frozenset(
    {"ping", "hello", "isMaster", "ismaster", "buildInfo", "buildinfo", "connectionStatus", "logout", "whatsmyuri"}
)
"""Needs no login."""

_ON_DATABASE: dict[str, frozenset[str]] = {
    "read": READ,
    "readWrite": WRITE,
    "dbAdmin": ADMINISTER,
    "userAdmin": USERS,
    "dbOwner": WRITE | ADMINISTER | USERS,
}
_ANYWHERE: dict[str, frozenset[str]] = {
    "readAnyDatabase": READ | {"listDatabases"},
    "readWriteAnyDatabase": WRITE | {"listDatabases"},
    "dbAdminAnyDatabase": ADMINISTER | {"listDatabases"},
    "userAdminAnyDatabase": USERS | {"listDatabases"},
    "clusterMonitor": MONITOR,
    "clusterManager": MANAGE,
    "clusterAdmin": MANAGE | {"dropDatabase"},
    "hostManager": MANAGE,
    "backup": READ | MONITOR,
    "restore": WRITE | USERS,
    "root": WRITE | ADMINISTER | USERS | MANAGE,
    "__system": WRITE | ADMINISTER | USERS | MANAGE,
}


@dataclass(frozen=True, slots=True)
class Role:
    name: str
    database: str

    @property
    def known(self) -> bool:
        return self.name in _ON_DATABASE or (self.name in _ANYWHERE and self.database == "admin")

    def allows(self, action: str, database: str) -> bool:
        if self.name in _ANYWHERE and self.database == "admin":
            return action in _ANYWHERE[self.name]
        return database == self.database and action in _ON_DATABASE.get(self.name, frozenset())

    def description(self) -> dict[str, str]:
        return {"role": self.name, "db": self.database}


@dataclass(slots=True)
class User:
    name: str
    database: str
    password: str
    roles: list[Role] = field(default_factory=list)

    def may(self, action: str, database: str) -> bool:
        return any(role.allows(action, database) for role in self.roles)

    def description(self) -> dict[str, Any]:
        return {
            "_id": f"{self.database}.{self.name}",
            "user": self.name,
            "db": self.database,
            "roles": [role.description() for role in self.roles],
            "mechanisms": ["SCRAM-SHA-1", "SCRAM-SHA-256"],
        }

    def stored(self) -> dict[str, Any]:
        return {**self.description(), "credentials": self.password}


def user_from(stored: dict[str, Any]) -> User:
    roles = [Role(str(role["role"]), str(role["db"])) for role in stored["roles"]]
    return User(str(stored["user"]), str(stored["db"]), str(stored["credentials"]), roles)


def roles_from(role_documents: Iterable[Any], database: str) -> list[Role]:
    """Roles as commands have them: a name, or a name and a database."""
    found = [Role(r, database) if isinstance(r, str) else Role(str(r["role"]), str(r["db"])) for r in role_documents]
    return list(dict.fromkeys(found))
