"""The truth of a running episode, for the one operator whom the user has named.

The process of the episode alone knows what is wrong. An operator's view makes a pair of keys and names the public one;
an episode that is started with it (`SREARENA_REVEAL_TO`) publishes its truth encrypted to that key. The private key is
only in the memory of the view: neither a file nor a variable nor a command line holds anything that opens the truth, so
an agent that reads all of them, as the same user, learns nothing. All sealed texts have one length.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from srearena.conductor.episode.records import seconds_of
from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.base import Problem

REVEAL_TO = "SREARENA_REVEAL_TO"
"""The variable with the public key of an operator."""
_KEY_BYTES = 32
_LENGTH = 65_536
"""Bytes of every truth before it is sealed; more than its bounded fields can have."""
_LONGEST_EXPLANATION = 4_000
_MOST_NAMES = 40
_NONCE = bytes(12)
"""Each key seals one text."""


class OperatorKey:
    """The pair of keys of one operator, in memory only."""

    def __init__(self) -> None:
        self._private = X25519PrivateKey.generate()

    @property
    def public(self) -> str:
        return _encoded(self._private.public_key().public_bytes_raw())

    def open(self, sealed: str) -> dict[str, Any] | None:
        """The truth that was sealed to this key; None where it was sealed to another one, or is none."""
        try:
            data = base64.urlsafe_b64decode(sealed)
            sender = X25519PublicKey.from_public_bytes(data[:_KEY_BYTES])
            key = _key(
                self._private.exchange(sender), data[:_KEY_BYTES] + self._private.public_key().public_bytes_raw()
            )
            document = json.loads(ChaCha20Poly1305(key).decrypt(_NONCE, data[_KEY_BYTES:], None))
        except (ValueError, InvalidTag, RecursionError):
            return None
        return document if isinstance(document, dict) else None


def check_operator(variables: Mapping[str, str]) -> None:
    """ArenaError where the environment names an operator by something that is no key."""
    _operator(variables)


def sealed_truth(problem: Problem, variables: Mapping[str, str]) -> dict[str, str]:
    """The truth for the operator that the environment names, as a part of what an episode publishes; else nothing."""
    operator = _operator(variables)
    if operator is None:
        return {}
    truth = problem.ground_truth
    document = {
        "problem": problem.id,
        "explanation": truth.explanation[:_LONGEST_EXPLANATION],
        "roots": [group.id for group in truth.roots][:_MOST_NAMES],
        "fault": seconds_of(problem.injected_at) if problem.fault_injected else None,
    }
    text = json.dumps(document).encode()
    sender = X25519PrivateKey.generate()
    public = sender.public_key().public_bytes_raw()
    key = _key(sender.exchange(operator), public + operator.public_bytes_raw())
    return {"sealed": _encoded(public + ChaCha20Poly1305(key).encrypt(_NONCE, text.ljust(_LENGTH), None))}


def _operator(variables: Mapping[str, str]) -> X25519PublicKey | None:
    text = variables.get(REVEAL_TO, "")
    if not text:
        return None
    try:
        return X25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(text))
    except ValueError as problem:
        raise ArenaError(f"{REVEAL_TO} is not a key that `srearena view --reveal-faults` has printed") from problem


def _key(shared: bytes, parties: bytes) -> bytes:
    return HKDF(SHA256(), _KEY_BYTES, salt=None, info=b"srearena disclosure " + parties).derive(shared)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()
