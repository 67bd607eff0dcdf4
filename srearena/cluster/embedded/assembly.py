"""Assemble a cluster: the world, its admission rules, its components, and the first minutes of virtual time.

The order is that of a real installation: the API's own objects first, then nodes with their kubelets, then the
control loops, then the system workloads, and enough virtual time for all of it to come up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from srearena.application_model import load_model
from srearena.cluster.embedded import controllers
from srearena.cluster.embedded.api.authorization import Attributes, Authorizer, Decision
from srearena.cluster.embedded.bootstrap import objects
from srearena.cluster.embedded.controllers.api_services import ApiServices
from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.controllers.horizontal_autoscaler import HorizontalAutoscaler
from srearena.cluster.embedded.extension_servers import ExtensionServers
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.machine.machine import NodeSpec
from srearena.cluster.embedded.network.network import Network
from srearena.cluster.embedded.options import SETTLING_SECONDS, ClusterOptions
from srearena.cluster.embedded.pacing import wall_now
from srearena.cluster.embedded.registry.admission.plugins import install
from srearena.cluster.embedded.scheduler.scheduler import Scheduler
from srearena.cluster.embedded.telemetry.collectors.runtime_metrics import RuntimeMetricsCollector
from srearena.cluster.embedded.telemetry.collectors.span_metrics import SpanMetricsCollector
from srearena.cluster.embedded.telemetry.collectors.standard import standard_collectors
from srearena.cluster.embedded.telemetry.observability.registration import register_observability
from srearena.cluster.embedded.telemetry.pipeline import Telemetry
from srearena.cluster.embedded.traffic.engine import Traffic
from srearena.cluster.embedded.traffic.programs import register_model
from srearena.cluster.embedded.webhook_calls import WebhookCalls
from srearena.cluster.embedded.world import World

if TYPE_CHECKING:
    from srearena.cluster.embedded.cel.kubernetes import Check

CONTROL_PLANE = "control-plane"
_SYSTEM_AFTER = 1.0


@dataclass(slots=True)
class Assembly:
    """The components of a running cluster."""

    world: World
    network: Network
    nodes: Nodes
    scheduler: Scheduler
    controllers: dict[str, Controller]
    telemetry: Telemetry
    traffic: Traffic
    extensions: ExtensionServers
    made_for: float
    """The instant for which the world was made: the start that was asked for, or the real now at that moment."""


def assemble(options: ClusterOptions, root_certificate: str = "") -> Assembly:
    """Build a settled cluster; its virtual now is `options.start` or the real now, minus `options.behind`."""
    # Times in objects are whole seconds: with a fraction, chance would decide what kubelets and controllers round.
    present = options.start if options.start is not None else math.floor(wall_now())
    handed_over_at = present - options.behind
    begin = handed_over_at - SETTLING_SECONDS
    world = World(seed=options.seed, start=begin, secret=options.secret, has_addons=options.addons)
    world.root_certificate = root_certificate
    webhooks = install(world.registry)
    objects.create_namespaces(world)
    objects.create_roles(world)
    objects.create_server_objects(world)
    objects.create_controller_accounts(world)
    running = controllers.start_all(world)
    authorizer = Authorizer(world.store)
    webhooks.conditions.authorize = lambda user, check: _answer(authorizer.decide(user, _attributes_of(check)))
    network = Network(world)
    network.permits = lambda user, verb, group, resource: (
        authorizer.decide(user, Attributes(verb, group, resource)).allowed
    )
    nodes = Nodes(world)
    nodes.connect(network)
    traffic = Traffic(world, network)
    for folder in options.models:
        register_model(load_model(Path(folder)), nodes.catalogue, nodes.programs, traffic)
    telemetry = Telemetry(world, nodes)
    traffic.on_trace += [telemetry.spans.add, telemetry.receivers.report]
    register_observability(nodes.programs, telemetry)
    telemetry.start()
    for spec in _machines(options):
        nodes.add(spec)
    scheduler = Scheduler(world)
    scheduler.start()
    telemetry.add(standard_collectors(network, nodes, scheduler, running, telemetry.metrics))
    telemetry.add(
        [SpanMetricsCollector(traffic.counters, telemetry.metrics), RuntimeMetricsCollector(traffic, telemetry.metrics)]
    )
    autoscaler = running[HorizontalAutoscaler.name]
    assert isinstance(autoscaler, HorizontalAutoscaler)
    autoscaler.metrics = nodes.agent
    here = network.fabric.hosts.nodes[CONTROL_PLANE]
    webhooks.caller = WebhookCalls(world.clock, world.store, network.client_of(here))
    world.registry.conversion_calls.caller = webhooks.caller
    extensions = ExtensionServers(world.clock, world.store, network.client_of(here), root_certificate.encode())
    api_services = running[ApiServices.name]
    assert isinstance(api_services, ApiServices)
    api_services.discovery = extensions
    world.clock.advance(_SYSTEM_AFTER)
    objects.create_api_service(world, nodes.address_of(CONTROL_PLANE))
    objects.create_system(world)
    world.clock.run_until(handed_over_at)
    return Assembly(world, network, nodes, scheduler, running, telemetry, traffic, extensions, present)


def _attributes_of(check: Check) -> Attributes:
    """What an expression of an admission policy asks the authorizer."""
    if check.path:
        return Attributes(check.verb, path=check.path)
    return Attributes(check.verb, check.group, check.resource, check.subresource, check.name, check.namespace)


def _answer(decision: Decision) -> tuple[bool, str]:
    return decision.allowed, decision.reason


def _machines(options: ClusterOptions) -> list[NodeSpec]:
    workers = [
        NodeSpec(f"worker-{number}", cpu=options.worker_cpu, memory=options.worker_memory, pods=options.pods_per_node)
        for number in range(1, options.workers + 1)
    ]
    return [NodeSpec(CONTROL_PLANE, role="control-plane"), *workers]
