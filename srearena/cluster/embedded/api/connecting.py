"""Admission of connections: exec, attach, portforward and proxy are CONNECT requests, which webhooks may refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.waiting import settled
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.admission.chain import Attributes

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

SUBRESOURCES: Final = frozenset(("exec", "attach", "portforward", "proxy"))
_STREAMS: Final = ("stdin", "stdout", "stderr", "tty")
_KINDS: Final = {
    ("pods", "exec"): "PodExecOptions",
    ("pods", "attach"): "PodAttachOptions",
    ("pods", "portforward"): "PodPortForwardOptions",
    ("pods", "proxy"): "PodProxyOptions",
    ("services", "proxy"): "ServiceProxyOptions",
    ("nodes", "proxy"): "NodeProxyOptions",
}


async def admit(backend: Backend, request: Request) -> None:
    """Ask admission about a connection before it is made."""
    info = request.info
    row = backend.registry.resources.find(info.group, info.version, info.resource)
    kind = _KINDS.get((info.resource, info.subresource))
    if row is None or kind is None:
        return
    options = _options(request, kind)

    def check() -> None:
        attributes = Attributes(
            "CONNECT", row, info.namespace, info.name, request.user, obj=dict(options), subresource=info.subresource
        )
        backend.registry.admission.admit(attributes)
        backend.registry.admission.validate(attributes)

    await settled(check)


def _options(request: Request, kind: str) -> Obj:
    """The options of a connection, which are its query, as an object."""
    query = request.query
    options: Obj = {"kind": kind, "apiVersion": "v1"}
    if kind in ("PodExecOptions", "PodAttachOptions"):
        options |= {name: True for name in _STREAMS if query.flag(name)}
        options |= {"container": query.text("container")} if query.has("container") else {}
    if kind == "PodExecOptions":
        options["command"] = query.all("command")
    if kind == "PodPortForwardOptions":
        options["ports"] = [int(port) for port in query.all("ports") if port.isdigit()]
    if kind.endswith("ProxyOptions"):
        options["path"] = request.path.partition("/proxy")[2] or "/"
    return options
