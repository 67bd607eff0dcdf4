"""agnhost test-service-account-issuer-discovery: checks a token with the keys that its issuer publishes."""

from __future__ import annotations

import base64
import json
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from srearena.cluster.embedded.machine.networking.sockets import HttpRequest
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.programs.agnhost.commands import command, log_time
from srearena.cluster.embedded.programs.serving import Flags
from srearena.cluster.embedded.programs.toolboxes.cluster_api import ACCOUNT

_CONFIGURATION = "/.well-known/openid-configuration"


class NotValid(Exception):
    """The token, or its issuer, is not what it should be."""


@command("test-service-account-issuer-discovery")
async def issuer_discovery(process: Process, flags: Flags) -> int:
    async def log(text: str) -> None:
        await process.error(f"{log_time(process)} {text}\n")

    try:
        token = process.files.read_text(flags.get("token-path"))
        await log("OK: Got token")
        await log("validating with in-cluster discovery")
        claims = _json(token.split(".")[1])
        await log(f"OK: got issuer {claims['iss']}")
        provider = await _fetch(process, f"{claims['iss']}{_CONFIGURATION}")
        if provider["issuer"] != claims["iss"]:
            issuers = f'expected "{claims["iss"]}" got "{provider["issuer"]}"'
            raise NotValid(f"oidc: issuer did not match the issuer returned by provider, {issuers}")
        await log(f"OK: Constructed OIDC provider for issuer {claims['iss']}")
        check_signature(token, (await _fetch(process, provider["jwks_uri"]))["keys"])
        if flags.get("audience") not in claims["aud"]:
            raise NotValid(f'oidc: expected audience "{flags.get("audience")}" got {json.dumps(claims["aud"])}')
        if claims["exp"] <= process.date:
            raise NotValid("oidc: token is expired")
    except OSError as error:
        await log(f"open {flags.get('token-path')}: {str(error.strerror).lower()}")
        return 1
    except (NotValid, ValueError, KeyError, IndexError, TypeError) as problem:
        await log(f"failed to validate with in-cluster discovery: {problem}")
        return 1
    await log("OK: Validated signature on JWT")
    await log("OK: Got valid claims from token!")
    return 0


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _json(text: str) -> Obj:
    found: Obj = json.loads(_bytes(text))
    return found


async def _fetch(process: Process, url: str) -> Obj:
    """A document of the issuer, with the pod's own token."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 443
    bearer = process.files.read_text(f"{ACCOUNT}/token").strip()
    headers = {"Host": host, "Authorization": f"Bearer {bearer}", "Accept": "application/json"}
    request = HttpRequest("GET", parts.path, headers, tls=True, server_name=host)
    result = await process.container.network.http(host, port, request, timeout=30.0)
    if result.response is None:
        raise NotValid(f'Get "{url}": {result.outcome}')
    if result.response.status != 200:
        raise NotValid(f"{result.response.status}: {result.response.body.decode(errors='replace')}")
    document: Obj = json.loads(result.response.body)
    return document


def check_signature(token: str, keys: list[Obj]) -> None:
    head, payload, signature = token.strip().split(".")
    key = next((key for key in keys if key["kid"] == _json(head)["kid"]), None)
    if key is None or key["kty"] != "RSA":
        raise NotValid("failed to verify signature: failed to verify id token signature")
    n, e = (int.from_bytes(_bytes(key[name])) for name in ("n", "e"))
    public = rsa.RSAPublicNumbers(e, n).public_key()
    try:
        public.verify(_bytes(signature), f"{head}.{payload}".encode(), padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        raise NotValid("failed to verify signature: failed to verify id token signature") from None
