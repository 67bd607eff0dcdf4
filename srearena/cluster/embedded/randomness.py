"""The only source of randomness in a cluster: named streams, one per purpose.

Streams are independent, so that drawing one more pod name does not change the jitter of a probe.
"""

from __future__ import annotations

import hashlib
import random
import uuid

# The alphabet of Kubernetes' generated names: no vowels and no look-alikes, so that no words appear by chance.
_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class Randomness:
    def __init__(self, seed: int, entropy: bytes = b"") -> None:
        self.seed = seed
        self._entropy = entropy
        self._streams: dict[str, random.Random] = {}

    def stream(self, purpose: str) -> random.Random:
        """The generator of that purpose, equal in every run with this seed."""
        found = self._streams.get(purpose)
        if found is None:
            found = self._streams[purpose] = random.Random(_start_of(self.seed, purpose))
        return found

    def secret(self, purpose: str) -> bytes:
        """Key material for that purpose, always the same. With entropy it cannot be guessed from the seed."""
        return hashlib.sha256(self._entropy + f"{self.seed}/secret/{purpose}".encode()).digest()

    def reseed(self, seed: int) -> None:
        """Draw everything from another seed from now on; the streams that components hold change with it."""
        self.seed = seed
        for purpose, stream in self._streams.items():
            stream.seed(_start_of(seed, purpose))

    def rekey(self, entropy: bytes) -> None:
        """Derive secrets from other entropy from now on."""
        self._entropy = entropy

    def uid(self) -> str:
        return str(uuid.UUID(int=self.stream("uid").getrandbits(128), version=4))

    def suffix(self, length: int = 5) -> str:
        """The random tail of a generated name."""
        return "".join(self.stream("names").choices(_NAME_ALPHABET, k=length))

    def jitter(self, purpose: str, base: float, spread: float = 0.1) -> float:
        """`base`, up to `spread` of it more or less."""
        return base * self.stream(purpose).uniform(1 - spread, 1 + spread)


def _start_of(seed: int, purpose: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/{purpose}".encode()).digest())
