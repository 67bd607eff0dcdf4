"""The runtime's configuration of a container, from the pod's spec: command, identity, limits, mounts."""

from __future__ import annotations

from collections.abc import Mapping

from srearena.cluster.embedded.kubelet.environment import ConfigError, expand
from srearena.cluster.embedded.kubelet.volumes.volumes import mounts_of
from srearena.cluster.embedded.machine.containers.container import ContainerConfig
from srearena.cluster.embedded.machine.containers.runtime import Sandbox
from srearena.cluster.embedded.machine.files.filesystem import Mount, Volume
from srearena.cluster.embedded.machine.files.inodes import File
from srearena.cluster.embedded.machine.files.mounted_volume import MountedVolume
from srearena.cluster.embedded.machine.images.program import ImageProgram
from srearena.cluster.embedded.machine.networking.resolver_files import hosts_file, resolver_file
from srearena.cluster.embedded.machine.processes.credentials import DEFAULT_CAPABILITIES
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of, uid_of
from srearena.cluster.embedded.quantity import milli, units

_PRIVILEGED = DEFAULT_CAPABILITIES | {
    "NET_ADMIN",
    "SYS_ADMIN",
    "SYS_PTRACE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_MODULE",
    "SYS_NICE",
    "IPC_LOCK",
}


def pod_text(pod: Obj) -> str:
    """`name_namespace(uid)`, as the kubelet's messages name a pod."""
    return f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"


def container_config(
    pod: Obj,
    container: Obj,
    sandbox: Sandbox,
    volumes: Mapping[str, MountedVolume],
    environment: dict[str, str],
    image: str,
) -> ContainerConfig:
    """Build the configuration; ConfigError where the spec cannot be satisfied."""
    security = {**dig(pod, "spec", "securityContext", default={}), **(container.get("securityContext") or {})}
    _check_identity(pod, container, security, sandbox.machine.programs.find(image))
    limits = dig(container, "resources", "limits") or dig(pod, "spec", "resources", "limits", default={})
    groups = [*security.get("supplementalGroups", ())]
    if security.get("fsGroup") is not None:
        groups.append(security["fsGroup"])
    return ContainerConfig(
        name=container["name"],
        image=image,
        command=_expanded(container.get("command"), environment),
        args=_expanded(container.get("args"), environment),
        env=environment,
        working_dir=container.get("workingDir") or None,
        uid=security.get("runAsUser"),
        gid=security.get("runAsGroup"),
        groups=tuple(groups),
        capabilities=_capabilities(security),
        mounts=[*mounts_of(pod, container, volumes, environment), *_own_files(pod, container, sandbox)],
        read_only_root=bool(security.get("readOnlyRootFilesystem")),
        no_new_privileges=security.get("allowPrivilegeEscalation") is False,
        cpu_limit=milli(limits["cpu"]) / 1000 if limits.get("cpu") else None,
        memory_limit=units(limits["memory"]) if limits.get("memory") else None,
        ports=container.get("ports") or (),
        stdin=bool(container.get("stdin")),
        stdin_once=bool(container.get("stdinOnce")),
        tty=bool(container.get("tty")),
    )


def _expanded(words: list[str] | None, environment: Mapping[str, str]) -> list[str] | None:
    return None if words is None else [expand(word, environment) for word in words]


def _check_identity(pod: Obj, container: Obj, security: Obj, program: ImageProgram) -> None:
    """runAsNonRoot is checked before anything runs."""
    if not security.get("runAsNonRoot"):
        return
    where = f'(pod: "{pod_text(pod)}", container: {container["name"]})'
    wanted = security.get("runAsUser")
    if wanted is not None:
        if wanted == 0:
            raise ConfigError(f"container's runAsUser breaks non-root policy {where}")
        return
    user = program.user.partition(":")[0]
    if user in ("", "0"):
        raise ConfigError(f"container has runAsNonRoot and image will run as root {where}")
    if not user.isdigit():
        raise ConfigError(
            f"container has runAsNonRoot and image has non-numeric user ({user}), "
            f"cannot verify user is non-root {where}"
        )


def _capabilities(security: Obj) -> frozenset[str]:
    if security.get("privileged"):
        return frozenset(_PRIVILEGED)
    wish = security.get("capabilities")
    if not wish:
        return DEFAULT_CAPABILITIES
    dropped = {_bare(name) for name in wish.get("drop") or ()}
    added = {_bare(name) for name in wish.get("add") or ()}
    kept = frozenset() if "ALL" in dropped else DEFAULT_CAPABILITIES - dropped
    return frozenset(_PRIVILEGED) if "ALL" in added else kept | added


def _bare(name: str) -> str:
    return name.upper().removeprefix("CAP_")


def _own_files(pod: Obj, container: Obj, sandbox: Sandbox) -> list[Mount]:
    """Files that the kubelet itself mounts into every container, where the pod has not mounted its own."""
    taken = {mount["mountPath"].rstrip("/") for mount in container.get("volumeMounts") or ()}
    now = sandbox.clock.now
    folder = f"/var/lib/kubelet/pods/{sandbox.uid}"
    resolver = resolver_file(pod, sandbox.machine.name_servers, sandbox.machine.domain)
    files: dict[str, tuple[bytes, int, str]] = {
        "/etc/hosts": (hosts_file(pod, sandbox.address, sandbox.hostname).encode(), 0o644, f"{folder}/etc-hosts"),
        "/etc/resolv.conf": (resolver.encode(), 0o644, "/var/lib/containerd/resolv.conf"),
    }
    message_path = container.get("terminationMessagePath")
    if message_path:
        files[message_path] = (b"", 0o666, f"{folder}/containers/{container['name']}/termination-log")
    return [
        Mount(path, Volume(space=sandbox.disk), node=File(data, mode, mtime=now), source=source)
        for path, (data, mode, source) in files.items()
        if path not in taken
    ]
