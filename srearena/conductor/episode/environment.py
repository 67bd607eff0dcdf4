"""The cluster of an episode: a new embedded one, or the real one that the configuration names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from srearena.cluster.base import NodeAccess, TelemetryEndpoints
from srearena.cluster.kubernetes import KubernetesCluster
from srearena.cluster.kubernetes.machines import KindMachines, LocalMachine, SshMachines
from srearena.conductor.episode.agent_access import NAMESPACE as IDENTITY
from srearena.conductor.episode.preparation import Say, TimedCluster, embedded_cluster
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ProblemError
from srearena.conductor.problems.base import Problem
from srearena.conductor.shared_cluster import (
    Needs,
    SharedCluster,
    check_access,
    open_shared_cluster,
    telemetry_of_run,
)
from srearena.conductor.shared_cluster.telemetry import NAMESPACE as OBSERVE
from srearena.conductor.shared_cluster.telemetry import stack
from srearena.config import Config
from srearena.service.apps.base import Application
from srearena.service.kubernetes import Kubernetes

_KIND = "kind"


def open_cluster(
    problem: Problem,
    spec: EpisodeSpec,
    *,
    nodes: NodeAccess | None = None,
    say: Say = lambda text: None,
) -> TimedCluster:
    """Open a cluster for the problem; ProblemError where the problem cannot run on it."""
    config = spec.backend
    backend = "embedded" if config.embedded else "kubernetes"
    if backend not in problem.runs_on:
        raise ProblemError(f"{problem.id} does not run on {backend}: it runs on {', '.join(problem.runs_on)}")
    if config.embedded:
        return embedded_cluster(problem, spec)
    return TimedCluster(
        real_cluster([problem.app], config, extra_namespaces=problem.extra_namespaces, nodes=nodes, say=say)
    )


def real_cluster(
    applications: Sequence[Application],
    config: Config,
    *,
    extra_namespaces: Sequence[str] = (),
    nodes: NodeAccess | None = None,
    say: Say = lambda text: None,
) -> SharedCluster:
    """Open the configured cluster for these applications; closing it restores its state."""
    telemetry = config.telemetry
    cluster = _configured(config)
    cluster.set_node_access(nodes or machines_of(cluster, config))
    names = tuple(dict.fromkeys(name for app in applications for name in app.namespaces))
    namespaces = [*names, *extra_namespaces, IDENTITY]
    manifests = [m for app in applications for m in app.manifests]
    if telemetry is None:
        namespaces.append(OBSERVE)
        manifests += stack(config.log_shipper)
    try:
        shared = open_shared_cluster(cluster, Needs(tuple(namespaces), tuple(manifests)), config, say)
    except BaseException:
        cluster.close()
        raise
    if telemetry is None:
        say("installing telemetry")
        try:
            shared.observe(names, config.log_shipper)
        except BaseException:
            shared.close()
            raise
    return shared


def check_configured(config: Config) -> None:
    """ClusterError where the configured real cluster is off limits, unreachable, too old, or rights are missing."""
    cluster = _configured(config)
    try:
        with Kubernetes.of(cluster) as api:
            check_access(cluster.context, api, trusted=config.yes_this_cluster)
    finally:
        cluster.close()


@contextmanager
def telemetry_in_use(config: Config) -> Iterator[TelemetryEndpoints]:
    """The telemetry of the configured cluster: the configured addresses, or what a run in progress has installed."""
    cluster = _configured(config)
    try:
        if config.telemetry is not None:
            yield cluster.telemetry
        else:
            with telemetry_of_run(cluster) as endpoints:
                yield endpoints
    finally:
        cluster.close()


def _configured(config: Config) -> KubernetesCluster:
    telemetry = config.telemetry
    return KubernetesCluster(
        Path(config.kubeconfig).expanduser() if config.kubeconfig else None,
        context=config.context,
        name=config.k8s_host,
        telemetry=TelemetryEndpoints(**telemetry.model_dump()) if telemetry is not None else None,
    )


def machines_of(cluster: KubernetesCluster, config: Config) -> NodeAccess | None:
    """Access to the cluster's machines by the configured `k8s_host`; None where there is none."""
    if config.k8s_host == _KIND or cluster.context.name.startswith(f"{_KIND}-"):
        return KindMachines()
    if config.k8s_host == "localhost":
        return LocalMachine()
    if config.k8s_host == "kubernetes":
        return None
    return SshMachines(config.k8s_user, partial(_address, cluster))


def _address(cluster: KubernetesCluster, node: str) -> str:
    """The internal IP address of a node; its name where the node reports none."""
    with Kubernetes.of(cluster) as api:
        addresses = api.get("nodes", node)["status"].get("addresses") or ()
    return next((str(entry["address"]) for entry in addresses if entry["type"] == "InternalIP"), node)
