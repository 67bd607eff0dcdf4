"""Faults in the Astronomy Shop's stores and their clients: passwords, locks, and jobs that overload a store."""

from __future__ import annotations

from srearena.generators.fault.edits import Addition, CompositeFault, Edit, ReplacePods
from srearena.generators.fault.pod_templates import first_container
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.steps import Command, selector_of
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj


def job(bed: Testbed, name: str, image: str, script: str, env: dict[str, str] | None = None) -> Obj:
    """A Job that runs a script and restarts it when it fails."""
    container: Obj = {
        "name": name,
        "image": image,
        "command": ["sh", "-c", script],
        "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
    }
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "opentelemetry-demo"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": bed.namespace, "labels": labels},
        "spec": {
            "backoffLimit": 50,
            "template": {
                "metadata": {"labels": labels},
                "spec": {"restartPolicy": "OnFailure", "terminationGracePeriodSeconds": 5, "containers": [container]},
            },
        },
    }


@fault("valkey_auth_disruption")
def store_asks_for_password(bed: Testbed, store: str, client: str, password: str = "c4rt-s3ss10ns") -> Fault:
    """A store begins to require a password that its client does not have; the client restarts."""
    set_password = ("config", "set", "requirepass")
    require_password = Command(
        bed,
        store,
        ["valkey-cli", *set_password, password],
        ["valkey-cli", "-a", password, *set_password, ""],
        check=lambda: "NOAUTH" in require_password.run(["valkey-cli", "get", "session"]),
    )
    return CompositeFault(require_password, ReplacePods(bed, selector_of(bed, client)))


@fault("valkey_memory_disruption")
def store_flooded(bed: Testbed, name: str, store: str, bytes_each: int = 1_000_000) -> Fault:
    """A job continuously writes values without expiry into a store, more than its memory holds."""
    script = (
        f"head -c {bytes_each} /dev/zero | tr '\\0' x > /tmp/page; i=0; while true; do i=$((i+1)); "
        f"valkey-cli -h {store} -x set page:$i < /tmp/page > /dev/null || sleep 5; sleep 1; done"
    )
    return Addition(bed, job(bed, name, "valkey/valkey:9.0.1-alpine3.23", script))


@fault("postgres_lock_contention")
def table_locked(bed: Testbed, name: str, store: str, table: str) -> Fault:
    """A job opens a transaction, takes an exclusive lock on a table, and does not end."""
    script = (
        f"while true; do (echo 'BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE;'; "
        f"seq 2000 | sed 's/.*/SELECT pg_sleep(20);/') | psql -q -h {store} -U root otel > /dev/null; sleep 5; done"
    )
    return Addition(bed, job(bed, name, "postgres:17.6", script, {"PGPASSWORD": "otel"}))


@fault("secret_rotation")
def password_rotated(bed: Testbed, client: str, store: str, secret: str, old: str, new: str) -> Fault:
    """A password is rotated everywhere, but one client that read it at startup is not restarted."""

    def as_user(password: str) -> list[str]:
        change = f"ALTER USER otelu WITH PASSWORD '{password}'"
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'otelu'"
        return ["psql", "-U", "root", "otel", "-c", change, "-c", end]

    def in_texts(obj: Obj) -> None:
        for field in ("data", "stringData"):
            for key, value in (obj.get(field) or {}).items():
                obj[field][key] = value.replace(old, new)

    def in_secret(obj: Obj) -> None:
        key = "DB_CONNECTION_STRING"
        obj.pop("data", None)
        obj["stringData"] = {key: f"postgres://otelu:{new}@{store}/otel?sslmode=disable"}

    def in_variables(obj: Obj) -> None:
        for entry in first_container(obj).get("env", ()):
            if "value" in entry and entry["name"] == "DB_CONNECTION_STRING":
                entry["value"] = entry["value"].replace(old, new)

    others = [
        workload["metadata"]["name"]
        for workload in bed.kubernetes.list("deployments", bed.namespace)
        if workload["metadata"]["name"] != client
        and any(
            entry["name"] == "DB_CONNECTION_STRING" and old in entry.get("value", "")
            for entry in first_container(workload).get("env", ())
        )
    ]
    return CompositeFault(
        Edit(bed, "secrets", secret, in_secret),
        Edit(bed, "configmaps", "postgresql-init", in_texts),
        *(Edit(bed, "deployments", name, in_variables) for name in others),
        Command(bed, store, as_user(new), as_user(old)),
    )
