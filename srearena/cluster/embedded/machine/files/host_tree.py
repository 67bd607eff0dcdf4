"""The files of a machine that pods can see through hostPath volumes."""

from __future__ import annotations

import posixpath

from srearena.cluster.embedded.machine.files.filesystem import Volume
from srearena.cluster.embedded.machine.files.inodes import Directory, File, Node, Symlink

_FOLDERS = (
    "/boot",
    "/data",
    "/dev",
    "/etc/cni/net.d",
    "/etc/kubernetes/manifests",
    "/etc/kubernetes/pki",
    "/etc/ssl/certs",
    "/etc/ca-certificates",
    "/home",
    "/lib/modules",
    "/mnt",
    "/opt/cni/bin",
    "/opt/local-path-provisioner",
    "/proc",
    "/root",
    "/run/containerd",
    "/run/udev",
    "/srv",
    "/sys/fs/bpf",
    "/sys/fs/cgroup",
    "/tmp",
    "/usr/local/share/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/libexec/kubernetes/kubelet-plugins/volume/exec",
    "/var/lib/etcd",
    "/var/lib/kubelet/pods",
    "/var/lib/kubelet/plugins",
    "/var/lib/containerd",
    "/var/log/containers",
    "/var/log/pods",
    "/var/run",
)

_SOCKETS = ("/run/containerd/containerd.sock", "/var/run/docker.sock")


def host_tree(hostname: str) -> Volume:
    """A fresh machine's file system."""
    root = Directory(0o755)
    for path in _FOLDERS:
        make_folders(root, path)
    texts = {
        "/etc/hostname": f"{hostname}\n",
        "/etc/hosts": f"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t{hostname}\n",
        "/etc/machine-id": "",
        "/etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nID=debian\n',
        "/etc/resolv.conf": "nameserver 172.18.0.1\noptions ndots:0\n",
        "/run/xtables.lock": "",
        **dict.fromkeys(_SOCKETS, ""),
    }
    for path, text in texts.items():
        folder, _, name = path.rpartition("/")
        make_folders(root, folder).put(name, File(text.encode()))
    return Volume(root, fstype="ext4", source="/dev/sda1")


def install(root: Directory, system: Directory) -> None:
    """Put the files of an operating system beside those that a machine has already."""
    for name in system.names():
        node, present = system.get(name), root.get(name)
        if isinstance(present, Directory) and isinstance(node, Directory):
            install(present, node)
        elif present is None and node is not None:
            root.put(name, node)


def is_socket(path: str) -> bool:
    return path in _SOCKETS


def find(root: Directory, path: str, *, links: int = 40) -> Node | None:
    """The node at an absolute path of the machine, if there is one; of links, what they lead to."""
    here: Node = root
    names = _names(path)
    for place, name in enumerate(names):
        child = here.get(name) if isinstance(here, Directory) else None
        if isinstance(child, Symlink) and child.node is None:
            if not links:
                return None
            above = "/" + "/".join(names[:place])
            target = posixpath.normpath(posixpath.join(above, child.target, *names[place + 1 :]))
            return find(root, target, links=links - 1)
        if child is None:
            return None
        here = child
    return here


def make_folders(root: Directory, path: str) -> Directory:
    """The directory at a path, made with its parents where it is missing; NotADirectoryError where a file is."""
    here = root
    for name in _names(path):
        child = here.get(name)
        if child is None:
            child = Directory(0o755)
            here.put(name, child)
        if not isinstance(child, Directory):
            raise NotADirectoryError(path)
        here = child
    return here


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]
