"""All collectors of a cluster, in the order in which they are scraped."""

from __future__ import annotations

from collections.abc import Mapping

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.network.network import Network
from srearena.cluster.embedded.scheduler.scheduler import Scheduler
from srearena.cluster.embedded.telemetry.collectors.api_requests import ApiRequests
from srearena.cluster.embedded.telemetry.collectors.blackbox import BlackboxCollector
from srearena.cluster.embedded.telemetry.collectors.cadvisor import CadvisorCollector
from srearena.cluster.embedded.telemetry.collectors.collector import Collector
from srearena.cluster.embedded.telemetry.collectors.control_plane import control_plane_collectors
from srearena.cluster.embedded.telemetry.collectors.ingress_probes import IngressProbeCollector
from srearena.cluster.embedded.telemetry.collectors.kube_proxy import KubeProxyCollector
from srearena.cluster.embedded.telemetry.collectors.kube_state.collector import KubeStateCollector
from srearena.cluster.embedded.telemetry.collectors.kubelet import KubeletCollector, ProbeCollector
from srearena.cluster.embedded.telemetry.collectors.machine_usage import MachineUsages
from srearena.cluster.embedded.telemetry.collectors.node_exporter import NodeExporterCollector
from srearena.cluster.embedded.telemetry.collectors.programs import ProgramCollector
from srearena.cluster.embedded.telemetry.collectors.scraper import Scraper
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

ETCD_BYTES = 14_000
"""Bytes that etcd writes for a change: the record of its log, and the pages of its database that it touches. Chosen."""


def standard_collectors(
    network: Network,
    nodes: Nodes,
    scheduler: Scheduler,
    controllers: Mapping[str, Controller],
    store: MetricStore,
) -> list[Collector]:
    """Return the collectors of a cluster whose machines are running."""
    world = nodes.world
    scraper, times = Scraper(network, world.control_plane_name), MachineUsages()
    server = nodes.kubelets[world.control_plane_name].machine
    requests = ApiRequests(world, server)
    times.of(server).extra_writes = lambda: world.store.revision * ETCD_BYTES
    return [
        KubeStateCollector(world, store),
        CadvisorCollector(nodes, times, scraper, store),
        KubeletCollector(nodes, requests, times, scraper, store),
        ProbeCollector(nodes, scraper, store),
        KubeProxyCollector(nodes, requests, scraper, store),
        NodeExporterCollector(nodes, network.fabric.flows, times, scraper, store),
        *control_plane_collectors(world, nodes, scheduler, controllers, requests, scraper, store),
        ProgramCollector(nodes, scraper, store),
        BlackboxCollector(world, scraper, store),
        IngressProbeCollector(world, network.client_of(scraper.host), store),
    ]
