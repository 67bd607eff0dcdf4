"""Faults in databases: users, their permissions, and the TLS settings of the server.

They are made in the database's own shell, or in the configuration it reads at startup.
"""

from __future__ import annotations

import yaml

from srearena.generators.fault.edits import CompositeFault, Edit, ReplacePods
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.steps import Command, selector_of
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

_ADMINISTRATOR = ("-u", "root", "-p", "root", "--authenticationDatabase", "admin")


def _mongo_command(script: str) -> list[str]:
    return ["mongo", "admin", "--quiet", *_ADMINISTRATOR, "--eval", script]


def _restart_client(bed: Testbed, client: str) -> Fault:
    return ReplacePods(bed, selector_of(bed, client))


@fault("revoke_auth")
def revoke_auth(bed: Testbed, database: str, client: str, schema: str) -> Fault:
    """A service's database user loses the role to read its data; the service restarts."""
    role = f"[{{role: 'readWrite', db: '{schema}'}}]"
    revoked = Command(
        bed,
        database,
        _mongo_command(f"db.revokeRolesFromUser('admin', {role})"),
        _mongo_command(f"db.grantRolesToUser('admin', {role})"),
        check=lambda: "readWrite" not in revoked.run(_mongo_command("printjson(db.getUser('admin').roles)")),
    )
    return CompositeFault(revoked, _restart_client(bed, client))


@fault("storage_user_unregistered")
def storage_user_unregistered(bed: Testbed, database: str, client: str, schema: str) -> Fault:
    """A service's database user is dropped; the service restarts."""
    roles = f"[{{role: 'userAdminAnyDatabase', db: 'admin'}}, {{role: 'readWrite', db: '{schema}'}}]"
    dropped = Command(
        bed,
        database,
        _mongo_command("db.dropUser('admin')"),
        _mongo_command(f"db.createUser({{user: 'admin', pwd: 'admin', roles: {roles}}})"),
        check=lambda: "null" in dropped.run(_mongo_command("printjson(db.getUser('admin'))")),
    )
    return CompositeFault(dropped, _restart_client(bed, client))


@fault("auth_miss_mongodb")
def auth_miss_mongodb(bed: Testbed, database: str, certificate: str = "/etc/ssl/mongodb/tls.pem") -> Fault:
    """A server is configured to require TLS with a certificate that does not exist."""

    def change(obj: Obj) -> None:
        settings = yaml.safe_load(obj["data"]["mongod.conf"]) or {}
        settings.setdefault("net", {})["tls"] = {"mode": "requireTLS", "certificateKeyFile": certificate}
        obj["data"]["mongod.conf"] = yaml.safe_dump(settings, sort_keys=False)

    return CompositeFault(Edit(bed, "configmaps", database, change), ReplacePods(bed, selector_of(bed, database)))
