"""Decoys: what looks like the sign of a repair and is none. Each was tried with the rights of the engineer on call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from srearena.conductor.episode.episode import Episode
from srearena.conductor.oracles.checks import Intent, Leftovers, Readiness
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.problems.target_port import TargetPort
from srearena.service.kubernetes import Kubernetes, Obj
from tests.arena.episodes import prepared_episode, shop_problem

SHOP, ASTRONOMY, HOTEL = "corner-shop", "astronomy-shop", "hotel-reservation"


@contextmanager
def agent_of(episode: Episode) -> Iterator[Kubernetes]:
    episode.cluster.set_speed(0)
    assert episode.kubeconfig is not None
    with Kubernetes(
        episode.kubeconfig, pass_time=episode.cluster.wait, fast_forward=episode.cluster.fast_forward
    ) as api:
        yield api


def complaints(episode: Episode, check: str) -> list[str]:
    oracle = episode.problem.mitigation_oracle
    assert isinstance(oracle, MitigationOracle)
    (found,) = [one for one in oracle.checks if one.name == check]
    return found.complaints(episode.problem)


def sleeping(kind: str, name: str, labels: dict[str, str]) -> Obj:
    pod: Obj = {"containers": [{"name": "shell", "image": "busybox:1.36", "command": ["sleep", "infinity"]}]}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": labels}, "spec": pod}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


class Revised(TargetPort):
    """The healthy system has an earlier revision, as every system in use does."""

    def set_up(self) -> None:
        newer: dict[str, Any] = {"containers": [{"name": "web", "env": [{"name": "RELEASE", "value": "2"}]}]}
        self.kubernetes.patch("deployments", "web", {"spec": {"template": {"spec": newer}}}, SHOP)
        self.cluster.wait(30)


def test_a_system_on_crutches_is_graded_without_them_and_without_detours() -> None:
    with prepared_episode(shop_problem(Revised), stages=("mitigation",)) as episode, agent_of(episode) as agent:
        problem = episode.problem
        assert Intent().complaints(problem) == [] == Leftovers().complaints(problem)
        # A pod and a workload of the agent's own, one of them with a borrowed owner.
        owner = agent.get("deployments", "web", SHOP)["metadata"]
        borrowed = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "web",
            "uid": owner["uid"],
            "controller": True,
        }
        pod = sleeping("Pod", "crutch", {"app": "crutch"})
        pod["metadata"]["ownerReferences"] = [borrowed]
        agent.create(pod, SHOP)
        agent.create(sleeping("Deployment", "helper", {"app": "helper"}), SHOP)
        # Two that are called like declared ones, of another kind and in another namespace.
        agent.create(sleeping("StatefulSet", "web", {"app": "twin"}), SHOP)
        agent.create(sleeping("Deployment", "coredns", {"app": "namesake"}), SHOP)
        # One that takes an hour for its end, and whose owner no collector knows.
        stayer = sleeping("Pod", "stayer", {"app": "stayer"})
        window = {"apiVersion": "example.com/v1", "kind": "Window", "name": "w", "uid": "u", "controller": True}
        stayer["metadata"]["ownerReferences"] = [window]
        stayer["spec"]["containers"][0]["command"] = ["sh", "-c", "trap '' TERM; sleep infinity"]
        stayer["spec"]["terminationGracePeriodSeconds"] = 3600
        agent.create(stayer, SHOP)
        # One that seems to be a static pod of a node, and one that a finalizer keeps with its workload.
        node = agent.list("nodes")[0]["metadata"]
        static = sleeping("Pod", "static", {"app": "static"})
        machine = {"apiVersion": "v1", "kind": "Node", "name": node["name"], "uid": node["uid"], "controller": True}
        static["metadata"]["ownerReferences"] = [machine]
        agent.create(static, SHOP)
        held = sleeping("Deployment", "held", {"app": "held"})
        held["metadata"]["finalizers"] = ["example.com/hold"]
        agent.create(held, SHOP)
        # A container beside a program, and a command that a probe runs in another one.
        beside = {"name": "beside", "image": "busybox:1.36", "command": ["sleep", "infinity"]}
        agent.patch("deployments", "store", {"spec": {"template": {"spec": {"containers": [beside]}}}}, SHOP)
        name = agent.get("deployments", "api", SHOP)["spec"]["template"]["spec"]["containers"][0]["name"]
        acting = {"name": name, "livenessProbe": {"exec": {"command": ["true"]}}}
        agent.patch("deployments", "api", {"spec": {"template": {"spec": {"containers": [acting]}}}}, SHOP)
        agent.scale("deployments", "api", 2, SHOP)
        episode.cluster.wait(20)
        assert Leftovers().complaints(problem) == []
        running = {pod["metadata"]["labels"]["app"] for pod in agent.list("pods", SHOP)}
        assert running == {"web", "api", "store"}
        store, api = (agent.get("deployments", name, SHOP)["spec"]["template"]["spec"] for name in ("store", "api"))
        assert len(store["containers"]) == 1
        assert "exec" not in (api["containers"][0].get("livenessProbe") or {})
        Readiness(hold=0).complaints(problem)
        assert len(agent.list("pods", SHOP, labels="app=api")) == 2
        # A policy that keeps calls from a program.
        policy = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "cut"},
            "spec": {"podSelector": {"matchLabels": {"app": "store"}}, "policyTypes": ["Ingress"]},
        }
        agent.create(policy, SHOP)
        assert any("isolates store" in line for line in Intent().complaints(problem))
        agent.delete("networkpolicies", "cut", SHOP)
        # Back to a revision from before the healthy one.
        (older,) = [
            replica_set["spec"]["template"]["spec"]
            for replica_set in agent.list("replicasets", SHOP, labels="app=web")
            if not (replica_set["spec"].get("replicas"))
        ]
        agent.patch("deployments", "web", [{"op": "replace", "path": "/spec/template/spec", "value": older}], SHOP)
        Readiness(hold=0).complaints(problem)
        assert Intent().complaints(problem) == ["Deployment web is back at a revision from before the healthy one"]


def test_a_flag_that_programs_cannot_read_is_still_on() -> None:
    """Programs that do not reach flagd use their defaults, and the symptoms end."""
    problem = ProblemRegistry().get_problem("astronomy_shop_ad_service_failure")
    with prepared_episode(problem, stages=("mitigation",)) as episode, agent_of(episode) as agent:
        policy = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "cut"},
            "spec": {
                "podSelector": {"matchLabels": {"opentelemetry.io/name": "flagd"}},
                "policyTypes": ["Ingress"],
                "ingress": [
                    {
                        "from": [
                            {
                                "podSelector": {
                                    "matchExpressions": [
                                        {"key": "opentelemetry.io/name", "operator": "NotIn", "values": ["ad"]}
                                    ]
                                }
                            }
                        ]
                    }
                ],
            },
        }
        agent.create(policy, ASTRONOMY)
        episode.cluster.wait(60)
        assert complaints(episode, "flag") == ["the flag adFailure is True, and was False"]
        assert any("isolates flagd" in line for line in complaints(episode, "intent"))
        agent.delete("networkpolicies", "cut", ASTRONOMY)
        settings = agent.get("configmaps", "flagd-config", ASTRONOMY)["data"]["demo.flagd.json"]
        head, _, tail = settings.partition('"adFailure"')
        off = head + '"adFailure"' + tail.replace('"defaultVariant": "on"', '"defaultVariant": "off"', 1)
        agent.patch("configmaps", "flagd-config", {"data": {"demo.flagd.json": off}}, ASTRONOMY)
        agent.restart("deployments", "flagd", ASTRONOMY)
        episode.cluster.wait(60)
        assert complaints(episode, "flag") == []


def test_an_old_password_put_back_is_found_whatever_carries_the_label() -> None:
    problem = ProblemRegistry().get_problem("secret_rotation_stale_env_credentials_astronomy_shop")
    with prepared_episode(problem, stages=("mitigation",)) as episode, agent_of(episode) as agent:
        assert complaints(episode, "old-password") == []
        (store,) = agent.list("pods", ASTRONOMY, labels="opentelemetry.io/name=postgresql")
        statement = "ALTER USER otelu PASSWORD 'otelp'"
        command = ["psql", "-U", "root", "otel", "-c", statement]
        assert agent.exec(store["metadata"]["name"], command, ASTRONOMY).status == 0
        # A pod that sorts before the store and refuses every login, because it has no client.
        decoy = sleeping("Pod", "a-postgresql", {"opentelemetry.io/name": "postgresql"})
        decoy["spec"]["containers"][0]["readinessProbe"] = {"exec": {"command": ["false"]}}
        agent.create(decoy, ASTRONOMY)
        episode.cluster.wait(20)
        assert complaints(episode, "old-password") == ["postgresql accepts the old password of otelu"]


def test_data_that_was_deleted_and_made_anew_is_missed() -> None:
    problem = ProblemRegistry().get_problem("wrong_bin_usage")
    with prepared_episode(problem, stages=("mitigation",)) as episode, agent_of(episode) as agent:
        assert complaints(episode, "data") == []
        login = ["mongo", "geo-db", "-u", "root", "-p", "root", "--authenticationDatabase", "admin", "--quiet"]
        (store,) = agent.list("pods", HOTEL, labels="io.kompose.service=mongodb-geo")
        answer = agent.exec(store["metadata"]["name"], [*login, "--eval", "db.geo.deleteMany({})"], HOTEL)
        assert answer.status == 0, answer
        assert complaints(episode, "data") == ["geo-db.geo of mongodb-geo holds 0 records, and held 80"]
        agent.restart("deployments", "geo", HOTEL)  # which fills an empty collection
        episode.cluster.wait(60)
        (complaint,) = complaints(episode, "data")
        assert "mongodb-geo holds" in complaint


@pytest.mark.parametrize("order", [("rate", "logs"), ("logs", "rate")])
def test_a_limit_is_read_wherever_the_program_is_listed(order: tuple[str, str]) -> None:

    env = [{"name": "RATE_QUEUE_CAPACITY", "value": "100000"}]
    assert _policy_complaints([{"name": name, "env": env if name == "rate" else []} for name in order]) == TOO_MUCH


def test_a_limit_that_comes_from_a_config_map_counts() -> None:
    source = {"envFrom": [{"configMapRef": {"name": "tuning"}}]}
    assert _policy_complaints([{"name": "rate", **source}], {"RATE_QUEUE_CAPACITY": "100000"}) == TOO_MUCH
    assert _policy_complaints([{"name": "rate", **source}], {"RATE_QUEUE_CAPACITY": "10"}) == []


TOO_MUCH = ["RATE_QUEUE_CAPACITY is 100000, more than 256"]


def _policy_complaints(containers: list[Obj], settings: dict[str, str] | None = None) -> list[str]:
    from srearena.conductor.problems.metastable import Policy

    metadata = {"name": "tuning", "namespace": HOTEL}
    workload = {"metadata": {**metadata, "name": "rate"}, "spec": {"template": {"spec": {"containers": containers}}}}
    objects = {"configmaps": [{"kind": "ConfigMap", "metadata": metadata, "data": settings or {}}]}
    api = SimpleNamespace(
        find=lambda *words: workload, knows=lambda resource: True, list=lambda resource: objects.get(resource, [])
    )
    app = SimpleNamespace(namespaces=(HOTEL,))
    return Policy().complaints(cast(Problem, SimpleNamespace(kubernetes=api, namespace=HOTEL, app=app)))
