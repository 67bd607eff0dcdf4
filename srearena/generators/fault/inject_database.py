"""Faults in databases: users and their rights, and how a server wants to be spoken to.

They are typed into the database's own shell, or into the configuration it reads at start, as an administrator would.
"""

from __future__ import annotations

import yaml

from srearena.generators.fault.edits import Edit, PodsReplaced, Together
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.steps import Command, selector_of
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

_ADMINISTRATOR = ("-u", "root", "-p", "root", "--authenticationDatabase", "admin")


def _typed(script: str) -> list[str]:
    return ["mongo", "admin", "--quiet", *_ADMINISTRATOR, "--eval", script]


def _clients_anew(bed: Testbed, client: str) -> Fault:
    return PodsReplaced(bed, selector_of(bed, client))


@fault("revoke_auth")
def revoke_auth(bed: Testbed, database: str, client: str, schema: str) -> Fault:
    """The user a service logs in with may not read its data any more; the service starts anew and finds out."""
    role = f"[{{role: 'readWrite', db: '{schema}'}}]"
    revoked = Command(
        bed,
        database,
        _typed(f"db.revokeRolesFromUser('admin', {role})"),
        _typed(f"db.grantRolesToUser('admin', {role})"),
        holds=lambda: "readWrite" not in revoked.run(_typed("printjson(db.getUser('admin').roles)")),
    )
    return Together(revoked, _clients_anew(bed, client))


@fault("storage_user_unregistered")
def storage_user_unregistered(bed: Testbed, database: str, client: str, schema: str) -> Fault:
    """The user a service logs in with is gone; the service starts anew and finds out."""
    roles = f"[{{role: 'userAdminAnyDatabase', db: 'admin'}}, {{role: 'readWrite', db: '{schema}'}}]"
    dropped = Command(
        bed,
        database,
        _typed("db.dropUser('admin')"),
        _typed(f"db.createUser({{user: 'admin', pwd: 'admin', roles: {roles}}})"),
        holds=lambda: "null" in dropped.run(_typed("printjson(db.getUser('admin'))")),
    )
    return Together(dropped, _clients_anew(bed, client))


@fault("auth_miss_mongodb")
def auth_miss_mongodb(bed: Testbed, database: str, certificate: str = "/etc/ssl/mongodb/tls.pem") -> Fault:
    """A server is told to insist on TLS, with a certificate that nobody gave it."""

    def change(obj: Obj) -> None:
        settings = yaml.safe_load(obj["data"]["mongod.conf"]) or {}
        settings.setdefault("net", {})["tls"] = {"mode": "requireTLS", "certificateKeyFile": certificate}
        obj["data"]["mongod.conf"] = yaml.safe_dump(settings, sort_keys=False)

    return Together(Edit(bed, "configmaps", database, change), PodsReplaced(bed, selector_of(bed, database)))
