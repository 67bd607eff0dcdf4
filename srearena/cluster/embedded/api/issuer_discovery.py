"""OpenID Connect discovery of the issuer of service account tokens: where its keys are, and the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.registry.tokens import ALGORITHM, ISSUER

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

CONFIGURATION: Final = "/.well-known/openid-configuration"
KEYS: Final = "/openid/v1/jwks"


async def serve(backend: Backend, request: Request) -> bool:
    """Answer if the path is one of discovery."""
    cached = [("cache-control", "public, max-age=3600")]
    if request.path.rstrip("/") == CONFIGURATION:
        document = {
            "issuer": ISSUER,
            "jwks_uri": f"{ISSUER}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }
        await request.reply(200, orjson.dumps(document), headers=cached)
        return True
    if request.path.rstrip("/") == KEYS:
        keys = orjson.dumps({"keys": [backend.issuer.public_key()]})
        await request.reply(200, keys, "application/jwk-set+json", cached)
        return True
    return False
