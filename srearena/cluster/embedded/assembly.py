"""Putting a cluster together: the world, its rules, its components, and a first stretch of life.

The order is that of a real installation: the API's own objects first, then nodes with their kubelets, then the
control loops, then the system workloads, and enough virtual time for all of it to come up.
"""

from __future__ import annotations

from dataclasses import dataclass

from srearena.cluster.embedded import controllers, network, node
from srearena.cluster.embedded.bootstrap import objects
from srearena.cluster.embedded.options import SETTLING_SECONDS, ClusterOptions
from srearena.cluster.embedded.pacing import wall_now
from srearena.cluster.embedded.registry.admission.plugins import install
from srearena.cluster.embedded.registry.custom_resources import CustomResources
from srearena.cluster.embedded.scheduler.scheduler import Scheduler
from srearena.cluster.embedded.world import World

CONTROL_PLANE = "control-plane"
_SYSTEM_AFTER = 1.0


@dataclass(slots=True)
class Assembly:
    """A cluster's parts, alive on its clock."""

    world: World
    network: network.Network
    nodes: node.Nodes
    scheduler: Scheduler


def assemble(options: ClusterOptions) -> Assembly:
    """A settled cluster whose virtual now is `options.start`, or the real now."""
    handed_over_at = options.start if options.start is not None else wall_now()
    world = World(seed=options.seed, start=handed_over_at - SETTLING_SECONDS, secret=options.secret)
    install(world.registry)
    CustomResources(world).start()
    objects.create_namespaces(world)
    objects.create_roles(world)
    net = network.start(world)
    nodes = node.start_nodes(world, _machines(options))
    scheduler = Scheduler(world)
    scheduler.start()
    controllers.start_all(world)
    world.clock.advance(_SYSTEM_AFTER)
    objects.create_api_service(world, nodes.address_of(CONTROL_PLANE))
    objects.create_system(world)
    world.clock.run_until(handed_over_at)
    return Assembly(world, net, nodes, scheduler)


def _machines(options: ClusterOptions) -> list[node.NodeSpec]:
    control_plane = node.NodeSpec(CONTROL_PLANE, role="control-plane")
    workers = [
        node.NodeSpec(
            f"worker-{number}", cpu=options.worker_cpu, memory=options.worker_memory, pods=options.pods_per_node
        )
        for number in range(1, options.workers + 1)
    ]
    return [control_plane, *workers]
