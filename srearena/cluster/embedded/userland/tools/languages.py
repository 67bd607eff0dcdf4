"""awk and sed: commands with a language of their own, imported at first use."""

from __future__ import annotations

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.registry import tool


@tool("awk", "mawk")
async def awk(process: Process, args: list[str]) -> int:
    from srearena.cluster.embedded.userland.awk.command import run

    return await run(process, args)


@tool("sed")
async def sed(process: Process, args: list[str]) -> int:
    from srearena.cluster.embedded.userland.sed.command import run

    return await run(process, args)
