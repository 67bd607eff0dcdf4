"""The hash of a pod template in the names of its generations."""

from __future__ import annotations

import hashlib

import orjson

from srearena.cluster.embedded.objects import Obj

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Obj, collisions: int = 0) -> str:
    """Equal templates give equal hashes; a collision count gives another one for the same template."""
    text = orjson.dumps([template, collisions], option=orjson.OPT_SORT_KEYS)
    number = int.from_bytes(hashlib.sha256(text).digest()[:4])
    # The real hash is a 32-bit number in decimal, each digit mapped into the safe alphabet: eight to ten letters.
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(number))
