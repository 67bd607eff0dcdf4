"""Environment and identity of containers: where values come from, and what is said when they do not come."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.kubelet.environment import expand
from srearena.cluster.embedded.objects import Obj
from tests.kubelet.harness import Lab

BUSYBOX = "busybox:1.36"


def secret(lab: Lab, name: str, data: dict[str, str]) -> None:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    lab.create("secrets", {"kind": "Secret", "type": "Opaque", "metadata": {"name": name}, "data": encoded})


def printed(lab: Lab, env: list[Obj], **container: object) -> dict[str, str]:
    lab.run(image=BUSYBOX, command=["env"], env=env, spec={"restartPolicy": "Never"}, **container)
    lab.pass_time(6)
    return dict(line.split("=", 1) for line in lab.log().splitlines())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapKeyRef": {"name": "missing", "key": "k"}}, 'configmap "missing" not found'),
        ({"secretKeyRef": {"name": "missing", "key": "k"}}, 'secret "missing" not found'),
        ({"configMapKeyRef": {"name": "there", "key": "k"}}, "couldn't find key k in ConfigMap default/there"),
        ({"secretKeyRef": {"name": "hidden", "key": "k"}}, "couldn't find key k in Secret default/hidden"),
    ],
)
def test_a_missing_source_is_a_config_error(lab: Lab, source: Obj, message: str) -> None:
    lab.config_map("there", {"other": "1"})
    secret(lab, "hidden", {"other": "1"})
    lab.run(image=BUSYBOX, command=["sleep", "1000"], env=[{"name": "A", "valueFrom": source}])
    lab.pass_time(5)
    assert lab.waiting() == ("CreateContainerConfigError", message)
    assert f"Error: {message}" in lab.messages(reason="Failed")
    assert lab.status()["phase"] == "Pending"


def test_creating_what_was_missing_heals_the_pod(lab: Lab) -> None:
    lab.run(image=BUSYBOX, command=["sleep", "1000"], envFrom=[{"configMapRef": {"name": "late"}}])
    lab.pass_time(20)
    assert lab.waiting()[0] == "CreateContainerConfigError"
    lab.config_map("late", {"K": "v"})
    lab.pass_time(20)
    assert lab.is_ready()
    assert lab.container()["restartCount"] == 0


def test_optional_sources_may_be_missing(lab: Lab) -> None:
    env = [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "missing", "key": "k", "optional": True}}},
        {"name": "B", "value": "b"},
    ]
    found = printed(lab, env)
    assert "A" not in found
    assert found["B"] == "b"


def test_values_come_from_everywhere(lab: Lab) -> None:
    lab.config_map("settings", {"LEVEL": "debug", "COLOUR": "blue"})
    secret(lab, "keys", {"token": "s3cret"})
    env = [
        {"name": "COLOUR", "value": "red"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
        {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
        {"name": "TEXT", "value": "$(WHO)-$(TOKEN) $$(WHO) $(NOBODY)"},
    ]
    found = printed(
        lab,
        env,
        envFrom=[{"configMapRef": {"name": "settings"}, "prefix": ""}],
        resources={"limits": {"cpu": "250m", "memory": "64Mi"}},
    )
    assert found["LEVEL"] == "debug"
    assert found["COLOUR"] == "red"
    assert found["TOKEN"] == "s3cret"
    assert found["WHO"] == "web"
    assert found["WHERE"] == lab.status()["podIP"]
    assert found["CPU"] == "250"
    assert found["MEMORY"] == str(64 * 1024**2)
    assert found["TEXT"] == "web-s3cret $(WHO) $(NOBODY)"


def test_services_of_the_namespace_are_announced(lab: Lab) -> None:
    lab.create(
        "services",
        {
            "kind": "Service",
            "metadata": {"name": "my-db"},
            "spec": {"clusterIP": "10.96.7.7", "ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}]},
        },
    )
    found = printed(lab, [{"name": "URL", "value": "db://$(MY_DB_SERVICE_HOST):$(MY_DB_SERVICE_PORT)"}])
    assert found["MY_DB_SERVICE_HOST"] == "10.96.7.7"
    assert found["MY_DB_SERVICE_PORT_SQL"] == "5432"
    assert found["MY_DB_PORT"] == "tcp://10.96.7.7:5432"
    assert found["MY_DB_PORT_5432_TCP_ADDR"] == "10.96.7.7"
    assert found["URL"] == "db://10.96.7.7:5432"


def test_services_are_not_announced_to_who_does_not_want_it(lab: Lab) -> None:
    lab.create(
        "services",
        {"kind": "Service", "metadata": {"name": "db"}, "spec": {"clusterIP": "10.96.7.7", "ports": [{"port": 5432}]}},
    )
    lab.run(image=BUSYBOX, command=["env"], spec={"restartPolicy": "Never", "enableServiceLinks": False})
    lab.pass_time(6)
    assert "DB_SERVICE_HOST" not in lab.log()


@pytest.mark.parametrize(
    ("image", "security", "words"),
    [
        (BUSYBOX, {"runAsNonRoot": True}, "container has runAsNonRoot and image will run as root"),
        (BUSYBOX, {"runAsNonRoot": True, "runAsUser": 0}, "container's runAsUser breaks non-root policy"),
    ],
)
def test_root_is_refused_where_it_was_forbidden(lab: Lab, image: str, security: Obj, words: str) -> None:
    pod = lab.run(image=image, command=["sleep", "9"], securityContext=security)
    lab.pass_time(5)
    where = f'(pod: "web_default({pod["metadata"]["uid"]})", container: main)'
    assert lab.waiting() == ("CreateContainerConfigError", f"{words} {where}")


def test_command_and_arguments_are_expanded(lab: Lab) -> None:
    lab.run(
        image=BUSYBOX,
        command=["echo", "$(NAME)"],
        args=["$$(NAME)"],
        env=[{"name": "NAME", "value": "hello"}],
        spec={"restartPolicy": "Never"},
    )
    lab.pass_time(6)
    assert lab.log() == "hello $(NAME)\n"


@given(st.text(alphabet="$()AB x", max_size=30))
def test_expansion_never_fails_and_leaves_plain_text_alone(text: str) -> None:
    result = expand(text, {"A": "1"})
    if "$" not in text:
        assert result == text
    assert expand(text.replace("$", "$$"), {"A": "1"}) == text
