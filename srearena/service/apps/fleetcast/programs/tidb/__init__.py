"""TiDB and its operator: PD, TiKV and TiDB servers, and the controller that creates them from a TidbCluster."""

from srearena.service.apps.fleetcast.programs.tidb.operator import TidbOperator
from srearena.service.apps.fleetcast.programs.tidb.pd import PlacementDriver
from srearena.service.apps.fleetcast.programs.tidb.server import TidbServer
from srearena.service.apps.fleetcast.programs.tidb.tikv import Tikv

__all__ = ["PlacementDriver", "TidbOperator", "TidbServer", "Tikv"]
