"""A module as applications ship them: importing it registers a program."""

from __future__ import annotations

from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program


@program("acme/from-a-plugin")
class FromPlugin(Program):
    entrypoint = ("/run",)
    binaries = ("/run",)
