"""Lifecycle hooks: postStart and preStop."""

from __future__ import annotations

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.kubelet.pods.container_setup import pod_text
from srearena.cluster.embedded.kubelet.probing.node_client import dial_error, node_http
from srearena.cluster.embedded.kubelet.probing.ports import port_number
from srearena.cluster.embedded.machine.containers.container import RuntimeFailure
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox
from srearena.cluster.embedded.machine.files.streams import Capture
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest
from srearena.cluster.embedded.objects import Obj

HTTP_TIMEOUT = 60.0


class HookFailed(Exception):
    """A hook failed; the message goes into the container's status."""


async def run_hook(hook: Obj, container: Obj, record: ContainerRecord, sandbox: Sandbox) -> str:
    """Run a handler to completion; returns the error, or an empty string."""
    whose = f'for Container "{container["name"]}" in Pod "{pod_text(sandbox.pod)}" failed - error:'
    try:
        if hook.get("exec"):
            command = hook["exec"].get("command") or []
            await _execute(command, record, f"Exec lifecycle hook ([{' '.join(command)}]) {whose}")
        elif hook.get("httpGet"):
            path = hook["httpGet"].get("path") or ""
            await _get(hook["httpGet"], container, sandbox, f"HTTP lifecycle hook ({path}) {whose}")
        elif hook.get("sleep"):
            await sandbox.clock.sleep(float(hook["sleep"].get("seconds") or 0))
    except HookFailed as failure:
        return str(failure)
    return ""


async def _execute(command: list[str], record: ContainerRecord, prefix: str) -> None:
    if record.container is None:
        raise HookFailed(f'{prefix} rpc error: code = Unknown desc = container is not running, message: ""')
    output = Capture()
    try:
        process = record.container.exec(command, stdout=output)
    except RuntimeFailure as error:
        raise HookFailed(f'{prefix} rpc error: code = Unknown desc = {error.message}, message: ""') from None
    await process.done.wait()
    code = process.done.value
    if code != 0:
        problem = f"command '{' '.join(command)}' exited with {code}: {output.text}"
        raise HookFailed(f"{prefix} {problem}, message: {quoted(output.text)}")


async def _get(action: Obj, container: Obj, sandbox: Sandbox, prefix: str) -> None:
    port = port_number(container, action.get("port"))
    if port is None:
        raise HookFailed(f'{prefix} strconv.Atoi: parsing "{action.get("port")}": invalid syntax')
    host, path = action.get("host") or sandbox.address, action.get("path") or "/"
    tls = action.get("scheme") == "HTTPS"
    headers = {"Host": f"{host}:{port}", "User-Agent": "kube-lifecycle/1.34"}
    headers.update({row["name"]: row["value"] for row in action.get("httpHeaders") or ()})
    request = HttpRequest("GET", path if path.startswith("/") else f"/{path}", headers, tls=tls)
    result = await node_http(sandbox.machine, host, port, request, HTTP_TIMEOUT)
    if result.response is None:
        url = f"{'https' if tls else 'http'}://{host}:{port}{request.target}"
        raise HookFailed(f'{prefix} Get "{url}": {dial_error(host, port, result.outcome)}')
