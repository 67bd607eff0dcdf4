"""Images with the mysql client and no server."""

from __future__ import annotations

from srearena.cluster.program_models import Process, Program, program
from srearena.service.products.mysql.program import Mysql


@program("codewisdom/mysqlclient", "imega/mysql-client", "arey/mysql-client")
class MysqlClient(Program):
    cmd = ("bash",)
    follows_tag = False
    binaries = ("/usr/bin/mysql", "/usr/bin/mysqladmin")
    idle_cpu = 0.0
    idle_memory = 6 * 1024 * 1024

    async def run(self, process: Process) -> int:
        """Run the client programs of the server's image."""
        return await Mysql(self.reference).run(process)
