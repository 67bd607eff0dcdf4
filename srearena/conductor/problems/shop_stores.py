"""Faults of the Astronomy Shop's stores: rotated passwords, and jobs that overload a store."""

from __future__ import annotations

from functools import partial

from srearena.conductor.oracles.checks.old_password import OldPassword
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.service.kubernetes import Obj

_SHOP = "astronomy_shop"
_OLD, _NEW = "otelp", "kT7vq2Zr9sWd"


class ShopStore(OriginProblem):
    level = "application"


@problem(
    "valkey_auth_disruption",
    app=_SHOP,
    service="valkey-cart",
    client="cart",
    victims=("cart", "checkout", "frontend", "frontend-proxy"),
)
class ValkeyAuthDisruption(ShopStore):
    family = "valkey_auth_disruption"
    fault = "valkey_auth_disruption"
    fault_type = "Authentication Issue"
    explanation = "{service} was set at run time to require a password, which {client} does not have."
    restart_is_a_remedy = True  # the configuration file is unchanged: a new pod requires no password
    remedy = """\
kubectl -n {ns} rollout restart deployment/{service}
kubectl -n {ns} rollout status deployment/{service} --timeout=90s
kubectl -n {ns} rollout restart deployment/{client}"""


@problem(
    "valkey_memory_disruption",
    app=_SHOP,
    service="page-cache-warmup",
    store="valkey-cart",
    victims=("valkey-cart", "cart", "frontend", "frontend-proxy"),
)
class ValkeyMemoryDisruption(ShopStore):
    family = "valkey_memory_disruption"
    fault = "valkey_memory_disruption"
    fault_type = "Operation Error"
    root_kind = "Job"
    explanation = "The job {service} fills {store} with values that never expire, until it is killed for its memory."
    remedy = """\
kubectl -n {ns} delete job {service}
kubectl -n {ns} wait --for=delete pod -l app.kubernetes.io/name={service} --timeout=60s
kubectl -n {ns} rollout restart deployment/{store}
kubectl -n {ns} rollout status deployment/{store} --timeout=90s
kubectl -n {ns} rollout restart deployment/cart"""


@problem(
    "postgres_lock_contention_product_catalog",
    app=_SHOP,
    service="catalog-reindex",
    store="postgresql",
    table="catalog.products",
    victims=("postgresql", "product-catalog", "frontend", "frontend-proxy"),
)
class PostgresLockContention(ShopStore):
    family = "postgres_lock_contention"
    difficulty = "hard"
    fault = "postgres_lock_contention"
    fault_type = "Operation Error"
    root_kind = "Job"
    explanation = "The job {service} holds an ACCESS EXCLUSIVE lock on {table} in a transaction without end."
    remedy = """\
kubectl -n {ns} delete job {service}
kubectl -n {ns} wait --for=delete pod -l job-name={service} --timeout=90s
kubectl -n {ns} rollout restart deployment/product-catalog
kubectl -n {ns} rollout status deployment/product-catalog --timeout=90s"""


@problem(
    "secret_rotation_stale_env_credentials_astronomy_shop",
    app=_SHOP,
    service="product-catalog",
    store="postgresql",
    secret="product-catalog-db",
    victims=("recommendation", "frontend", "frontend-proxy"),
)
class SecretRotation(ShopStore):
    """Moves product-catalog's database URL into a Secret from the start."""

    family = "secret_rotation_stale_env_credentials"
    difficulty = "hard"
    fault = "secret_rotation"
    contributing = ("Secret/{secret}", "Deployment/{store}")
    fault_type = "Authentication Issue"
    explanation = (
        "The database's password was rotated in {store}, in the Secret {secret} and elsewhere; {service} read it into "
        "its environment when it started, and still uses the old one."
    )
    restart_is_a_remedy = True  # the Secret has the new password: a restarted client reads it
    remedy = "kubectl -n {ns} rollout restart deployment/{service}"
    also = (partial(OldPassword, "postgresql", "otelu", "otel", _OLD),)

    def __init__(self, app: str, service: str, **options: str) -> None:
        victims = options.pop("victims", ())
        super().__init__(app, service, victims, old=_OLD, new=_NEW, **options)

    def set_up(self) -> None:
        name, key = self.options["secret"], "DB_CONNECTION_STRING"
        address = f"postgres://otelu:{_OLD}@{self.options['store']}/otel?sslmode=disable"
        secret: Obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {key: address}}
        self.kubernetes.create(secret, self.namespace)
        variable = {"name": key, "value": None, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}}
        template = {"spec": {"containers": [{"name": "product-catalog", "env": [variable]}]}}
        self.kubernetes.patch("deployments", "product-catalog", {"spec": {"template": template}}, self.namespace)
        self.cluster.wait(60)
