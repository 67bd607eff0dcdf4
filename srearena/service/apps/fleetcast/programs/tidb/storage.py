"""The data of TiKV stores, and the SQL server of each TiDB on it.

The data belong to the stores' volumes: each volume has a mark, and data can be reached as long as a store with one of
the marks that took part in them is up. So TiDB servers share them, one lost store of several loses nothing, and a
cluster whose every volume is gone begins anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from srearena.cluster.program_models import Process
from srearena.cluster.program_models.datastores import Login, Refusal
from srearena.service.apps.fleetcast.programs.tidb.system_tables import OWN_TABLES
from srearena.service.products.mysql.errors import MysqlError
from srearena.service.products.mysql.server import Account, MysqlServer

UNAVAILABLE = "PD server timeout"


class TikvData:
    """The data of all TiKV clusters, by the marks of the volumes they are on."""

    def __init__(self) -> None:
        self._by_mark: dict[str, MysqlServer] = {}

    def find(self, marks: Sequence[str]) -> MysqlServer | None:
        """The server with the data of these stores; stores that have joined share it from now on."""
        server = next((self._by_mark[mark] for mark in marks if mark in self._by_mark), None)
        if server is not None:
            self.begin(marks, server)
        return server

    def begin(self, marks: Sequence[str], server: MysqlServer) -> None:
        """Register the first server on empty stores."""
        for mark in marks:
            self._by_mark.setdefault(mark, server)


class TidbSql(MysqlServer):
    """The SQL server of one TiDB process; it needs PD and a store."""

    def __init__(self, process: Process, version: str, port: int, shared: MysqlServer | None) -> None:
        super().__init__(
            process, version=f"8.0.11-TiDB-v{version}", port=port, product="TiDB", daemon="tidb-server", shared=shared
        )
        self.variables["version_comment"] = "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible"
        self.variables["max_connections"] = "2147483647"
        self.variables["tidb_slow_log_threshold"] = "300"
        self.variables["slow_query_log_file"] = process.env.get("SLOW_LOG_FILE", "tidb-slow.log")
        self.own_tables = OWN_TABLES
        self.members: list[tuple[str, str, str, str]] = []
        """Type, address, status address and version of the cluster's members, as last seen."""
        if shared is None:
            self.accounts.append(Account("root", "%", "", {"*.*": {"ALL"}}))
        self._available = True

    @property
    def available(self) -> bool:
        return self._available

    @available.setter
    def available(self, now: bool) -> None:
        if now != self._available:
            self._available = now
            self._moved()

    def admits(self, login: Login, host: str) -> MysqlError | None:
        if not self._available:
            return MysqlError(9001, "HY000", UNAVAILABLE)
        return super().admits(login, host)

    def refuses(self, login: Login | None, action: str, target: str) -> Refusal | None:
        """Without stores a statement waits until the client times out."""
        if not self._available and not self.process.done.is_set:
            return Refusal("locked", UNAVAILABLE)
        return super().refuses(login, action, target)
