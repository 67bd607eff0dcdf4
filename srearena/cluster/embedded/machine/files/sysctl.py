"""/proc/sys: parameters of the kernel, which privileged containers write.

Those of the network belong to a network namespace, the others to the machine. A few have effects (the ports of clients,
the size of the connection tracking table); the others are kept and read again.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.machine.files.inodes import Directory, Generated, Node
from srearena.cluster.embedded.machine.files.listing import Listing, text_file
from srearena.cluster.embedded.machine.files.streams import os_error
from srearena.cluster.embedded.objects import dig

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.containers.container import Container

TRACKED_LIMIT: Final = "net.netfilter.nf_conntrack_max"
_TRACKED_COUNT: Final = "net.netfilter.nf_conntrack_count"
_DEFAULTS: Final = {
    "fs.file-max": "9223372036854775807",
    "fs.inotify.max_user_instances": "128",
    "fs.inotify.max_user_watches": "126516",
    "fs.nr_open": "1048576",
    "kernel.msgmax": "8192",
    "kernel.panic": "10",
    "kernel.panic_on_oops": "1",
    "kernel.pid_max": "4194304",
    "kernel.shm_rmid_forced": "0",
    "kernel.threads-max": "127373",
    "net.core.netdev_max_backlog": "1000",
    "net.core.rmem_max": "212992",
    "net.core.somaxconn": "4096",
    "net.core.wmem_max": "212992",
    "net.ipv4.ip_forward": "1",
    "net.ipv4.ip_local_port_range": "32768\t60999",
    "net.ipv4.ip_unprivileged_port_start": "0",
    "net.ipv4.ping_group_range": "0\t2147483647",
    "net.ipv4.tcp_fin_timeout": "60",
    "net.ipv4.tcp_keepalive_time": "7200",
    "net.ipv4.tcp_max_syn_backlog": "1024",
    "net.ipv4.tcp_syncookies": "1",
    "net.ipv4.tcp_tw_reuse": "2",
    TRACKED_LIMIT: "131072",
    "vm.dirty_background_ratio": "10",
    "vm.dirty_ratio": "20",
    "vm.max_map_count": "65530",
    "vm.overcommit_memory": "1",
    "vm.panic_on_oom": "0",
    "vm.swappiness": "60",
}
"""As a node of kubeadm has them: the kernel's defaults, and what the kubelet and the network plugin set."""


def boot_values(names: Iterable[str]) -> dict[str, str]:
    """What parameters are after a boot."""
    return {name: _DEFAULTS[name] for name in names}


def sysctl_folder(container: Container) -> Node:
    """/proc/sys of a container."""
    kernel = container.host.kernel
    values = {"kernel.hostname": container.host.hostname, "kernel.osrelease": kernel.release, **_DEFAULTS}
    for setting in dig(container.host.pod, "spec", "securityContext", "sysctls", default=()):
        values[setting["name"].replace("/", ".")] = "\t".join(setting["value"].split())
    values |= kernel.settings | container.namespace.settings
    files = {tuple(name.split(".")): _parameter(container, name, text) for name, text in values.items()}
    files.pop(tuple(TRACKED_LIMIT.split(".")))
    if container.namespace.tracked is not None:
        for index, name in enumerate((_TRACKED_COUNT, TRACKED_LIMIT)):
            files[tuple(name.split("."))] = _of_tracking(container, name, index)
    return _folder(files)


def _folder(files: dict[tuple[str, ...], Node]) -> Directory:
    """Files by the parts of their names, as a tree."""
    nodes: dict[str, Node] = {}
    for head in dict.fromkeys(name[0] for name in files):
        below = {name[1:]: node for name, node in files.items() if name[0] == head}
        nodes[head] = below[()] if () in below else _folder(below)
    return Listing(partial(dict, nodes))


def _parameter(container: Container, name: str, text: str) -> Node:
    fixed = name not in _DEFAULTS
    return _file(lambda: f"{text}\n", None if fixed else partial(_set, container, name))


def _of_tracking(container: Container, name: str, index: int) -> Node:
    def value() -> str:
        tracked = container.namespace.tracked
        return f"{tracked()[index] if tracked is not None else 0}\n"

    return _file(value, partial(_set, container, name) if name == TRACKED_LIMIT else None)


def _file(produce: Callable[[], str], accept: Callable[[bytes], None] | None) -> Generated:
    found = text_file(produce, 0o444 if accept is None else 0o644)
    found.accept = accept
    return found


def _set(container: Container, name: str, data: bytes) -> None:
    """Set a parameter, as a write to its file does."""
    if "SYS_ADMIN" not in container.config.capabilities:
        # Without privileges /proc/sys is mounted read-only.
        raise os_error(errno.EROFS)
    words = data.decode(errors="replace").split()
    present = _DEFAULTS.get(name, "0").split()
    if not words or len(words) > len(present) or not all(word.lstrip("-").isdigit() for word in words):
        raise os_error(errno.EINVAL)
    # Missing numbers of a vector stay as they are.
    text = "\t".join([*words, *present[len(words) :]])
    namespace = container.namespace
    if name.startswith("net."):
        if namespace.configure is not None and not namespace.configure(name, text):
            raise os_error(errno.EPERM)
        namespace.settings[name] = text
    else:
        container.host.kernel.settings[name] = text
