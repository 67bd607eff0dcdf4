"""The network of the embedded cluster: DNS, Services, policies, links and reachability."""

from srearena.cluster.embedded.network import programs
from srearena.cluster.embedded.network.network import Network, Reach
from srearena.cluster.embedded.world import World

__all__ = ["Network", "Reach", "programs", "start"]


def start(world: World) -> Network:
    """Build the network of a world; it hears of every change from now on."""
    return Network(world)
