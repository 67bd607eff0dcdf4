"""Train Ticket on an embedded cluster: forty-six services, and databases that agree on a leader."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.apps.deployed import Deployed, deployed, is_ready

NAMESPACE = "train-ticket"


@pytest.fixture(scope="module")
def railway() -> Iterator[Deployed]:
    with deployed("train-ticket") as running:
        yield running


def roles(railway: Deployed, name: str = "tsdb-mysql") -> dict[str, str]:
    pods = railway.pods(NAMESPACE, f"app={name}")
    return {pod: obj["metadata"]["labels"]["role"] for pod, obj in pods.items()}


def leaders(railway: Deployed) -> list[str]:
    """Where the Service of the leader leads."""
    subsets = railway.api.get("endpoints", "tsdb-mysql-leader", NAMESPACE).get("subsets") or ()
    return [address["targetRef"]["name"] for subset in subsets for address in subset.get("addresses") or ()]


def test_everything_is_up(railway: Deployed) -> None:
    pods = railway.pods(NAMESPACE)
    assert len(pods) == 46 + 6 + 3 + 3
    assert all(is_ready(pod) for pod in pods.values())


def test_the_members_agree_on_one_leader(railway: Deployed) -> None:
    members = roles(railway)
    assert sorted(members.values()) == ["follower", "follower", "leader"]
    assert leaders(railway) == [pod for pod, role in members.items() if role == "leader"]


def run_mysql(railway: Deployed, image: str) -> None:
    """Change the image of the servers; a pod gets it when it is made anew."""
    template = {"spec": {"containers": [{"name": "mysql", "image": image}]}}
    strategy = {"type": "OnDelete", "rollingUpdate": None}
    change = {"spec": {"updateStrategy": strategy, "template": template}}
    railway.api.patch("statefulsets", "tsdb-mysql", change, NAMESPACE)


def test_a_lost_leader_is_replaced_and_comes_back_as_a_follower(railway: Deployed) -> None:
    (lost,) = leaders(railway)
    run_mysql(railway, "radondb/percona:no-such-tag")
    railway.api.delete("pods", lost, NAMESPACE, grace=0)
    railway.wait(40)
    (leader,) = leaders(railway)
    assert leader != lost
    run_mysql(railway, "radondb/percona:5.7.34")
    railway.api.delete("pods", lost, NAMESPACE, grace=0)
    railway.wait(90)
    assert leaders(railway) == [leader]
    assert roles(railway) == {pod: "leader" if pod == leader else "follower" for pod in roles(railway)}


def test_without_the_right_to_patch_pods_there_is_no_new_leader(railway: Deployed) -> None:
    role = railway.api.get("roles", "tsdb-mysql", NAMESPACE)
    railway.api.patch("roles", "tsdb-mysql", {"rules": [{**role["rules"][0], "verbs": ["get"]}]}, NAMESPACE)
    for leader in leaders(railway):
        railway.api.delete("pods", leader, NAMESPACE, grace=0)
    railway.wait(60)
    assert leaders(railway) == []
    railway.api.patch("roles", "tsdb-mysql", {"rules": role["rules"]}, NAMESPACE)
    for pod in roles(railway):
        railway.api.delete("pods", pod, NAMESPACE, grace=0)
    railway.wait(120)
    assert len(leaders(railway)) == 1


def test_flags_are_read_live_from_the_config_map(railway: Deployed) -> None:
    def value() -> object:
        path = "/ofrep/v1/evaluate/flags/tt-feat-17"
        return json.loads(railway.api.request_service("flagd", 8016, path, NAMESPACE, method="POST").text)["value"]

    assert value() is False
    text = railway.api.get("configmaps", "flagd-config", NAMESPACE)["data"]["flags.yaml"]
    head, mark, tail = text.partition("tt-feat-17:")
    changed = head + mark + tail.replace("defaultVariant: 'off'", "defaultVariant: 'on'", 1)
    assert changed != text
    railway.api.patch("configmaps", "flagd-config", {"data": {"flags.yaml": changed}}, NAMESPACE)
    railway.wait(120)
    assert value() is True
    assert "filepath event" in railway.log(NAMESPACE, "app=flagd")
