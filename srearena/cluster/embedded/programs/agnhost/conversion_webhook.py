"""agnhost crd-conversion-webhook: converts the custom resources of the conformance tests between v1 and v2."""

from __future__ import annotations

import json

from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.programs.agnhost.commands import command, identity, serve
from srearena.cluster.embedded.programs.serving import Flags

_V1, _V2 = "stable.example.com/v1", "stable.example.com/v2"


class _Impossible(Exception):
    """The object cannot be converted."""


@command("crd-conversion-webhook")
async def conversion_webhook(process: Process, flags: Flags) -> int:
    certificate = await identity(process, flags)
    if certificate is None:
        return 255

    async def answer(request: HttpRequest) -> HttpResponse:
        if request.path == "/readyz":
            return HttpResponse.text("ok")
        if request.path != "/crdconvert":
            return HttpResponse.text("404 page not found\n", 404)
        try:
            review = json.loads(request.body)
            response = _converted(review["request"])
        except (ValueError, KeyError, TypeError) as problem:
            return HttpResponse.text(f"failed to deserialize body with error {problem}\n", 400)
        head = {"kind": "ConversionReview", "apiVersion": review.get("apiVersion", "apiextensions.k8s.io/v1")}
        body = json.dumps({**head, "response": response}).encode()
        return HttpResponse(200, body, {"Content-Type": "application/json"})

    return await serve(process, {flags.port("port", 443): answer}, certificate)


def _converted(request: Obj) -> Obj:
    desired = request["desiredAPIVersion"]
    try:
        objects = [_convert(obj, desired) for obj in request["objects"]]
    except _Impossible as problem:
        return {"uid": request["uid"], "result": {"status": "Failure", "message": str(problem)}}
    return {"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}}


def _convert(obj: Obj, desired: str) -> Obj:
    """`hostPort: a:1` of v1 is `host: a` and `port: 1` in v2."""
    present = obj["apiVersion"]
    if present == desired:
        raise _Impossible(f"conversion from a version to itself should not call the webhook: {desired}")
    result = {**obj, "apiVersion": desired}
    if (present, desired) == (_V1, _V2):
        if "hostPort" in result:
            text = result.pop("hostPort")
            host, colon, port = str(text).partition(":")
            if not colon or ":" in port:
                raise _Impossible(f"invalid hostPort value `{text}`")
            result |= {"host": host, "port": port}
    elif (present, desired) == (_V2, _V1):
        if "host" in result or "port" in result:
            result["hostPort"] = f"{result.pop('host', '')}:{result.pop('port', '')}"
    else:
        unknown = desired if present in (_V1, _V2) else present
        raise _Impossible(f'unexpected conversion version "{unknown}"')
    return result
