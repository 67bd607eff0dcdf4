"""The kubelet's own API, as `nodes/X/proxy` leads to it.

Health, pods, configuration, resource usage, metrics and the machine's /var/log are served; a checkpoint is refused as a
container runtime without that feature refuses it. Commands in containers (`/exec`, `/run`) are not served here.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import orjson

from srearena.cluster.embedded.kubelet.summary import resource_metrics
from srearena.cluster.embedded.machine.files.inodes import Directory, File, Generated, Node, Symlink
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of
from srearena.cluster.embedded.telemetry.component_metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend
    from srearena.cluster.embedded.api.node_agent import NodeAgent

_TEXT: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"
_HEALTH: Final = ((), ("ping",), ("log",), ("syncloop",))


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    content_type: str = _TEXT


_NOT_FOUND: Final = Answer(404, b"404 page not found\n")


def answer(backend: Backend, agent: NodeAgent, node: str, method: str, parts: tuple[str, ...], path: str) -> Answer:
    """Answer a request for a path of a node's kubelet."""
    if parts[:1] == ("checkpoint",) and len(parts) == 4:
        return _checkpoint(agent, node, method, *parts[1:])
    if method not in ("GET", "HEAD"):
        return Answer(405, b"405: Method Not Allowed")
    match parts:
        case ("healthz", *check) if tuple(check) in _HEALTH:
            return Answer(200, b"ok")
        case ("pods",) | ("pods", ""):
            return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": agent.pods_of(node)})
        case ("runningpods",) | ("runningpods", ""):
            return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": agent.running_pods(node)})
        case ("stats", "summary"):
            return _json(agent.summary(node))
        case ("metrics", "resource"):
            measured = resource_metrics(agent.summary(node), backend.world.clock.now)
            return Answer(200, measured.encode(), CONTENT_TYPE)
        case ("metrics", *page) if page in ([], ["cadvisor"], ["probes"]) and backend.component_metrics is not None:
            return Answer(200, backend.component_metrics.of_kubelet(node, "/" + "/".join(parts)), CONTENT_TYPE)
        case ("configz",):
            return _json({"kubeletconfig": agent.configuration(node)})
        case ("logs", *rest):
            return _log_file(agent.log_files(node), [part for part in rest if part], path)
    return _NOT_FOUND


def _json(document: Obj) -> Answer:
    return Answer(200, orjson.dumps(document), _JSON)


def _checkpoint(agent: NodeAgent, node: str, method: str, namespace: str, name: str, container: str) -> Answer:
    if method != "POST":
        return Answer(405, b"405: Method Not Allowed")
    pod = next((pod for pod in agent.pods_of(node) if (namespace_of(pod), name_of(pod)) == (namespace, name)), None)
    if pod is None:
        return Answer(404, b"pod does not exist\n")
    if not any(one["name"] == container for one in dig(pod, "spec", "containers", default=())):
        return Answer(404, f"container {container} does not exist\n".encode())
    unimplemented = "unknown method CheckpointContainer for service runtime.v1.RuntimeService"
    problem = f"rpc error: code = Unimplemented desc = {unimplemented}"
    return Answer(500, f"checkpointing of {namespace}/{name}/{container} failed ({problem})\n".encode())


def _log_file(folder: Directory, parts: list[str], path: str) -> Answer:
    """A file of /var/log, or the list of a folder, as Go's file server shows them."""
    here: Node | None = folder
    for part in parts:
        here = here.get(part) if isinstance(here, Directory) else None
        if isinstance(here, Symlink):
            here = _inside(folder, here.target)
    if isinstance(here, File):
        return Answer(200, here.read_at(0, here.size))
    if isinstance(here, Generated):
        return Answer(200, here.produce())
    if not isinstance(here, Directory):
        return _NOT_FOUND
    if not path.endswith("/"):
        return Answer(301, b"")
    names = [f"{name}/" if isinstance(here.get(name), Directory) else name for name in sorted(here.names())]
    links = "".join(f'<a href="{quote(name)}">{html.escape(name)}</a>\n' for name in names)
    return Answer(200, f"<pre>\n{links}</pre>\n".encode(), "text/html; charset=utf-8")


def _inside(folder: Directory, target: str) -> Node | None:
    """What a link points at, if that is below /var/log."""
    here: Node | None = folder
    for part in target.removeprefix("/var/log/").split("/") if target.startswith("/var/log/") else ():
        here = here.get(part) if isinstance(here, Directory) and part not in ("", "..") else None
    return here if here is not folder else None
