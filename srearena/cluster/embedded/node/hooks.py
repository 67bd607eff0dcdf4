"""Lifecycle hooks: what a container wants done right after its start and right before its end."""

from __future__ import annotations

from srearena.cluster.embedded.node.container import RuntimeFailure
from srearena.cluster.embedded.node.httpmessage import HttpRequest
from srearena.cluster.embedded.node.node_client import node_http
from srearena.cluster.embedded.node.ports import port_number
from srearena.cluster.embedded.node.runtime import ContainerRecord, Sandbox
from srearena.cluster.embedded.node.streams import Capture
from srearena.cluster.embedded.objects import Obj

HTTP_TIMEOUT = 60.0


class HookFailed(Exception):
    """The hook did not do what it should; the text goes into the container's status."""


async def run_hook(hook: Obj, container: Obj, record: ContainerRecord, sandbox: Sandbox) -> str:
    """Run a handler to its end; returns what went wrong, or nothing."""
    try:
        if hook.get("exec"):
            await _execute(hook["exec"].get("command") or [], record)
        elif hook.get("httpGet"):
            await _get(hook["httpGet"], container, sandbox)
        elif hook.get("sleep"):
            await sandbox.clock.sleep(float(hook["sleep"].get("seconds") or 0))
    except HookFailed as failure:
        return str(failure)
    return ""


async def _execute(command: list[str], record: ContainerRecord) -> None:
    if record.container is None:
        raise HookFailed("container is not running")
    output = Capture()
    try:
        process = record.container.exec(command, stdout=output)
    except RuntimeFailure as error:
        raise HookFailed(f"rpc error: code = Unknown desc = {error.message}") from None
    await process.done.wait()
    code = process.done.value
    if code != 0:
        raise HookFailed(f"command '{' '.join(command)}' exited with {code}: {output.text}")


async def _get(action: Obj, container: Obj, sandbox: Sandbox) -> None:
    port = port_number(container, action.get("port"))
    if port is None:
        raise HookFailed(f"couldn't find port: {action.get('port')}")
    host, path = action.get("host") or sandbox.address, action.get("path") or "/"
    tls = action.get("scheme") == "HTTPS"
    headers = {"Host": f"{host}:{port}", "User-Agent": "kube-lifecycle/1.34"}
    headers.update({row["name"]: row["value"] for row in action.get("httpHeaders") or ()})
    request = HttpRequest("GET", path if path.startswith("/") else f"/{path}", headers, tls=tls)
    result = await node_http(sandbox.machine, host, port, request, HTTP_TIMEOUT)
    if result.response is None:
        url = f"{'https' if tls else 'http'}://{host}:{port}{request.target}"
        raise HookFailed(f'Get "{url}": {result.outcome}')
