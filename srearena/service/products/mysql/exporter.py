"""Metrics of a MySQL server, under the names of its usual exporter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from srearena.cluster.program_models import Exporter, Sample

if TYPE_CHECKING:
    from srearena.service.products.mysql.server import MysqlServer

_NONE: Mapping[str, str] = {}


def _samples(server: MysqlServer) -> Iterable[Sample]:
    server.settle()
    from srearena.service.products.mysql.sessions import threads_running  # which needs the server's class

    sessions = server.sessions.values()
    yield "mysql_global_status_threads_connected", _NONE, len(sessions)
    yield "mysql_global_status_threads_running", _NONE, threads_running(server)
    yield "mysql_global_status_max_used_connections", _NONE, server.most
    yield "mysql_global_status_connections", _NONE, server.connected
    yield "mysql_global_status_questions", _NONE, server.questions
    yield "mysql_global_status_queries", _NONE, server.questions
    yield "mysql_global_status_slow_queries", _NONE, server.slow_statements
    for word, statements in server.commands.items():
        yield "mysql_global_status_commands_total", {"command": word}, statements
    yield "mysql_global_variables_max_connections", _NONE, float(server.variables.get("max_connections", 151))


EXPORTER = Exporter("mysqld-exporter", "mysql_up", _samples)
