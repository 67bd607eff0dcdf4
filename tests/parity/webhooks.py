"""The certificate of a scenario's own webhook, the Service `hook` of its namespace, valid on every cluster."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

from srearena.generators.certificates import Authority

_SINCE, _UNTIL = datetime(2025, 1, 1, tzinfo=UTC), datetime(2034, 12, 1, tzinfo=UTC)


def webhook_files(namespace: str) -> dict[str, str]:
    """Certificate and key for the server, and the JSON patches that make a webhook configuration trust it."""
    authority = Authority("Parity CA", namespace, _SINCE)
    certificate = authority.issue(f"hook.{namespace}.svc", _SINCE, _UNTIL)
    bundle = base64.b64encode(authority.pem.encode()).decode()
    patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]
    return {"tls.crt": certificate.certificate, "tls.key": certificate.key, "trust.json": json.dumps(patch)}
