"""Roles and what they were granted.

Privileges are kept per object: a table (`schema.table`), a schema, the database. The owner and superusers have all.
Column privileges, row security and grant options are not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

TABLE_PRIVILEGES = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"})
SCHEMA_PRIVILEGES = frozenset({"USAGE", "CREATE"})


@dataclass(slots=True)
class Role:
    name: str
    password: str = ""
    superuser: bool = False
    login: bool = True
    create_database: bool = False
    create_role: bool = False
    limit: int = -1
    member_of: list[str] = field(default_factory=list)

    def stored(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def attributes(self) -> str:
        """As \\du lists them."""
        words = [
            ("Superuser", self.superuser),
            ("Create role", self.create_role),
            ("Create DB", self.create_database),
            ("Cannot login", not self.login),
            ("Replication", self.superuser and self.create_database),
            ("Bypass RLS", self.superuser and self.create_database),
        ]
        return ", ".join(word for word, holds in words if holds)


class Privileges:
    """Who may do what to which object."""

    def __init__(self) -> None:
        self.granted: dict[str, dict[str, set[str]]] = {}
        """object → role → privileges; tables are "schema.table", schemas "schema:name", databases "database:name"."""
        self.owners: dict[str, str] = {}
        self.defaults: dict[str, dict[str, set[str]]] = {}
        """schema → role → privileges that new tables in it give."""

    def grant(self, thing: str, role: str, privileges: frozenset[str] | set[str]) -> None:
        self.granted.setdefault(thing, {}).setdefault(role, set()).update(privileges)

    def revoke(self, thing: str, role: str, privileges: frozenset[str] | set[str]) -> None:
        self.granted.get(thing, {}).get(role, set()).difference_update(privileges)

    def created(self, thing: str, owner: str) -> None:
        self.owners[thing] = owner
        for role, privileges in self.defaults.get(thing.partition(".")[0], {}).items():
            self.grant(thing, role, privileges)

    def forget(self, thing: str) -> None:
        self.granted.pop(thing, None)
        self.owners.pop(thing, None)

    def allows(self, names: list[str], thing: str, privilege: str) -> bool:
        """Whether one of these roles (a role and those it is a member of, and public) has it."""
        if self.owners.get(thing) in names:
            return True
        holders = self.granted.get(thing, {})
        return any(privilege in holders.get(name, ()) for name in names)

    def stored(self) -> dict[str, Any]:
        def plain(table: dict[str, dict[str, set[str]]]) -> dict[str, dict[str, list[str]]]:
            return {thing: {role: sorted(p) for role, p in roles.items()} for thing, roles in table.items()}

        return {"granted": plain(self.granted), "owners": self.owners, "defaults": plain(self.defaults)}

    @classmethod
    def restored(cls, stored: dict[str, Any]) -> Privileges:
        new_role = cls()
        new_role.owners = dict(stored["owners"])
        for target, source in ((new_role.granted, stored["granted"]), (new_role.defaults, stored["defaults"])):
            for thing, roles in source.items():
                target[thing] = {role: set(privileges) for role, privileges in roles.items()}
        return new_role
