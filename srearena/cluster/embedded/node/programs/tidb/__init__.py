"""TiDB and its operator: PD, TiKV and TiDB servers, and the controller that makes them of a TidbCluster."""

from srearena.cluster.embedded.node.programs.tidb.operator import TidbOperator
from srearena.cluster.embedded.node.programs.tidb.pd import PlacementDriver
from srearena.cluster.embedded.node.programs.tidb.server import TidbServer
from srearena.cluster.embedded.node.programs.tidb.tikv import Tikv

__all__ = ["PlacementDriver", "TidbOperator", "TidbServer", "Tikv"]
