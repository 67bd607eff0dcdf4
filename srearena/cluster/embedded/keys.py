"""Keys of the cluster, derived from its secret: the same secret gives the same keys."""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives.asymmetric import ec

_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def derived_key(secret: bytes, purpose: str) -> ec.EllipticCurvePrivateKey:
    """The P-256 key for that purpose."""
    digest = hashlib.sha512(secret + b"/" + purpose.encode()).digest()
    return ec.derive_private_key(int.from_bytes(digest) % (_P256_ORDER - 1) + 1, ec.SECP256R1())
