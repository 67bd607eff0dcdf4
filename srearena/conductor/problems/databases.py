"""Databases that refuse their clients: users, rights, and protocol settings."""

from __future__ import annotations

from typing import Any

from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem


def _store(of: str) -> dict[str, Any]:
    return {
        "app": "hotel_reservation",
        "service": f"mongodb-{of}",
        "client": of,
        "schema": f"{of}-db",
        "victims": (of, "search", "frontend"),
    }


_AS_ROOT = "kubectl -n {ns} exec deployment/{service} -- mongo admin -u root -p root --quiet --eval"


class DatabaseProblem(OriginProblem):
    level = "application"
    fault_type = "Authentication Issue"


@problem("revoke_auth_mongodb-1", **_store("geo"))
@problem("revoke_auth_mongodb-2", **_store("rate"))
class RevokeAuth(DatabaseProblem):
    family = "revoke_auth_mongodb"
    fault = "revoke_auth"
    explanation = (
        "In {service} the role readWrite on {schema} was revoked from the user admin, with whom {client} logs in: "
        "{client} ends when it starts, because it may not read its data."
    )
    remedy = f"""\
{_AS_ROOT} "db.grantRolesToUser('admin', [{{role: 'readWrite', db: '{{schema}}'}}])"
kubectl -n {{ns}} rollout restart deployment/{{client}}"""


@problem("storage_user_unregistered-1", aliases=("user_unregistered_mongodb-1",), **_store("geo"))
@problem("storage_user_unregistered-2", aliases=("user_unregistered_mongodb-2",), **_store("rate"))
class StorageUserUnregistered(DatabaseProblem):
    family = "storage_user_unregistered"
    fault = "storage_user_unregistered"
    explanation = "In {service} the user admin, with whom {client} logs in, was dropped: {client} ends when it starts."
    remedy = f"""\
{_AS_ROOT} "db.createUser({{user: 'admin', pwd: 'admin', roles: [{{role: 'userAdminAnyDatabase', db: 'admin'}},\
 {{role: 'readWrite', db: '{{schema}}'}}]}})"
kubectl -n {{ns}} rollout restart deployment/{{client}}"""


@problem(
    "auth_miss_mongodb",
    app="social_network",
    service="url-shorten-mongodb",
    victims=("url-shorten-service", "text-service", "compose-post-service", "nginx-thrift"),
)
class AuthMissMongodb(DatabaseProblem):
    family = "auth_miss_mongodb"
    fault = "auth_miss_mongodb"
    root_kind = "ConfigMap"
    explanation = (
        "The configuration of {service} demands TLS with a certificate file that is not mounted: the server does not "
        "start, and url-shorten-service has nowhere to keep what it shortens."
    )
    remedy = """\
kubectl -n {ns} patch configmap {service} --type=merge \
-p '{"data": {"mongod.conf": "net:\\n  tls:\\n    mode: disabled\\n"}}'
kubectl -n {ns} rollout restart deployment/{service} deployment/url-shorten-service"""
