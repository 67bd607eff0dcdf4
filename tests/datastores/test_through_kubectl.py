"""The datastores of the applications, in a cluster, as somebody with kubectl finds and changes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kubectl.operator import Operator

pytestmark = pytest.mark.kubectl

MONGO_SCRIPT = """\
#!/bin/bash
mongo <<EOF
use admin
db.createUser({user: 'admin', pwd: 'admin', roles: [
  {role: 'userAdminAnyDatabase', db: 'admin'}, {role: 'readWrite', db: 'geo-db'}]})
EOF
"""


def pod(name: str, image: str, *, volumes: dict[str, Any] | None = None, **container: Any) -> dict[str, Any]:
    mounts = [{"name": key, "mountPath": path} for key, (path, _) in (volumes or {}).items()]
    sources = [{"name": key, **source} for key, (_, source) in (volumes or {}).items()]
    container_spec = {"name": "store", "image": image, "volumeMounts": mounts, **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container_spec], "volumes": sources, "terminationGracePeriodSeconds": 5},
    }


def service(name: str, port: int) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def config_map(name: str, **files: str) -> dict[str, Any]:
    data = {key.replace("__", "."): text for key, text in files.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def claim(name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def env(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def test_a_mongodb_keeps_its_users_through_an_upgrade_that_fails_and_back(
    make_operator: Callable[..., Operator],
) -> None:
    operator = make_operator(nodes=1)
    volumes = {
        "data": ("/data/db", {"persistentVolumeClaim": {"claimName": "geo"}}),
        "scripts": ("/docker-entrypoint-initdb.d", {"configMap": {"name": "mongo-geo-script"}}),
    }
    operator.apply(claim("geo"), config_map("mongo-geo-script", init__sh=MONGO_SCRIPT))
    operator.apply(pod("mongodb-geo", "mongo:4.4.6", args=["--auth"], volumes=volumes))
    operator.wait(40)
    login = ["--quiet", "-u", "admin", "-p", "admin", "--authenticationDatabase", "admin"]
    shell = ["exec", "mongodb-geo", "--", "mongo", *login]
    assert operator.kubectl(*shell, "--eval", "db.getSiblingDB('admin').getUser('admin').roles.length") == "2\n"
    script = "mongo admin -u admin -p admin --authenticationDatabase admin --eval \"db.dropUser('admin')\"\n"
    operator.kubectl("exec", "-i", "mongodb-geo", "--", "bash", "-s", stdin=script)
    refused = operator.run(*shell, "--eval", "1")
    assert refused.code == 1
    assert "Authentication failed." in refused.out
    assert '"c":"ACCESS","id":20249' in operator.kubectl("logs", "mongodb-geo")
    operator.wait(2)
    operator.kubectl("delete", "pod", "mongodb-geo")
    operator.apply(pod("mongodb-geo", "mongo:8.0.14-rc0", args=["--auth"], volumes=volumes))
    operator.wait(30)
    state = operator.container("mongodb-geo")
    ended = state["lastState"].get("terminated") or state["state"]["terminated"]
    assert ended["exitCode"] == 62
    operator.kubectl("delete", "pod", "mongodb-geo")
    operator.apply(pod("mongodb-geo", "mongo:4.4.6", args=["--auth"], volumes=volumes))
    operator.wait(20)
    assert operator.container("mongodb-geo")["ready"]
    assert operator.run(*shell, "--eval", "1").code == 1


def test_a_shop_s_stores_answer_each_in_its_own_way(make_operator: Callable[..., Operator]) -> None:
    operator = make_operator(nodes=2)
    init = "CREATE USER otelu WITH PASSWORD 'otelp';\nCREATE SCHEMA catalog;\nGRANT USAGE ON SCHEMA catalog TO otelu;\n"
    init += "CREATE TABLE catalog.products (id TEXT PRIMARY KEY, name TEXT);\n"
    init += "INSERT INTO catalog.products VALUES ('OLJCESPC7Z', 'Explorascope');\n"
    init += "GRANT SELECT ON catalog.products TO otelu;\n"
    scripts = {"init": ("/docker-entrypoint-initdb.d", {"configMap": {"name": "postgresql-init"}})}
    operator.apply(
        config_map("postgresql-init", init__sql=init),
        pod(
            "postgresql",
            "postgres:17.6",
            volumes=scripts,
            env=env(POSTGRES_USER="root", POSTGRES_PASSWORD="otel", POSTGRES_DB="otel"),
        ),
        service("postgresql", 5432),
        pod("valkey-cart", "valkey/valkey:9.0.1-alpine3.23"),
        service("valkey-cart", 6379),
        pod(
            "kafka",
            "apache/kafka:3.9.1",
            env=env(KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://kafka:9092", KAFKA_HEAP_OPTS="-Xmx400M -Xms400M"),
            resources={"limits": {"memory": "600Mi"}},
        ),
        service("kafka", 9092),
        pod("client", "postgres:17.6", command=["sleep", "100000"]),
    )
    operator.wait(90)
    words = "env PGPASSWORD=otelp psql -h postgresql -U otelu otel"
    over_the_network = ["exec", "client", "--", *words.split()]
    assert operator.kubectl(*over_the_network, "-tAc", "SELECT name FROM catalog.products") == "Explorascope\n"
    inside = ["exec", "postgresql", "--", "psql", "-U", "root", "-d", "otel"]
    assert operator.kubectl(*inside, "-c", "ALTER USER otelu WITH PASSWORD 'rotated'") == "ALTER ROLE\n"
    assert 'password authentication failed for user "otelu"' in operator.fails(*over_the_network, "-c", "SELECT 1")
    assert operator.kubectl("exec", "valkey-cart", "--", "valkey-cli", "CONFIG", "SET", "requirepass", "x") == "OK\n"
    assert operator.kubectl("exec", "valkey-cart", "--", "valkey-cli", "PING").startswith("NOAUTH")
    tools = ["exec", "kafka", "--", "/opt/kafka/bin/kafka-topics.sh", "--bootstrap-server", "localhost:9092"]
    assert operator.kubectl(*tools, "--create", "--topic", "orders") == "Created topic orders.\n"
    assert operator.kubectl(*tools, "--list") == "orders\n"
