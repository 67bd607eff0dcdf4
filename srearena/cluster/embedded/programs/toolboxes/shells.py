"""Images that contain a userland and a shell: they run the command of the pod."""

from __future__ import annotations

from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program


class _Shell(Program):
    cmd = ("sh",)
    follows_tag = False
    idle_cpu = 0.0
    idle_memory = 512 * 1024


@program("busybox")
class Busybox(_Shell):
    base = "busybox"


@program("alpine")
class Alpine(_Shell):
    cmd = ("/bin/sh",)
    base = "alpine"


@program("debian", "bitnami/minideb")
class Debian(_Shell):
    cmd = ("bash",)
    base = "debian"


@program("ubuntu")
class Ubuntu(_Shell):
    cmd = ("/bin/bash",)
    base = "ubuntu"


@program("distroless/static", "distroless/base", "distroless/cc")
class Distroless(Program):
    """A base to build on: no shell, and nothing to run unless the pod brings it."""

    base = "distroless"
    follows_tag = False
    idle_cpu = 0.0
