"""Keys of the cluster, derived from its secret: the same secret gives the same keys."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from functools import cache, lru_cache

from cryptography.hazmat.primitives.asymmetric import ec, rsa

_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
RSA_EXPONENT = 65537
_PRIMES = 4
"""Primes of an RSA modulus. Finding two of 1024 bits takes an eighth of a second, four of 512 bits a quarter of that;
a factor of 512 bits is far out of reach as well, and no client can tell: it sees the modulus and the exponent."""
_PRIME_BITS = 512
_TRIAL_LIMIT = 4096
"""Candidates with a smaller factor are not tested further."""
_ROUNDS = 3
"""Miller-Rabin rounds; the first alone is wrong about one random number of 512 bits in 2**56 (Damgard et al., 1993)."""


def derived_key(secret: bytes, purpose: str) -> ec.EllipticCurvePrivateKey:
    """The P-256 key for that purpose."""
    digest = hashlib.sha512(secret + b"/" + purpose.encode()).digest()
    return ec.derive_private_key(int.from_bytes(digest) % (_P256_ORDER - 1) + 1, ec.SECP256R1())


@lru_cache(maxsize=8)
def derived_rsa_key(secret: bytes, purpose: str) -> rsa.RSAPrivateKey:
    """The RSA key of 2048 bits for that purpose."""
    primes = [_derived_prime(secret + f"/{purpose}/{number}".encode()) for number in range(_PRIMES)]
    half = _PRIMES // 2
    (p, p_order), (q, q_order) = ((math.prod(some), _order(some)) for some in (primes[:half], primes[half:]))
    d = pow(RSA_EXPONENT, -1, math.lcm(p_order, q_order))
    # The Chinese remainder theorem needs coprime factors, not primes; the library's validation insists on primes.
    numbers = rsa.RSAPrivateNumbers(
        p, q, d, d % p_order, d % q_order, pow(q, -1, p), rsa.RSAPublicNumbers(RSA_EXPONENT, p * q)
    )
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def _order(primes: list[int]) -> int:
    """The exponent of the multiplicative group modulo the product of different primes."""
    return math.lcm(*(prime - 1 for prime in primes))


def _derived_prime(seed: bytes) -> int:
    """The first suitable prime from a place that the seed gives; four of them make exactly 2048 bits."""
    start = int.from_bytes(hashlib.shake_256(seed).digest(_PRIME_BITS // 8))
    start |= 7 << (_PRIME_BITS - 3) | 1
    return next(number for number in _candidates(start) if number % RSA_EXPONENT != 1 and is_probable_prime(number))


def _candidates(start: int) -> Iterator[int]:
    """Odd numbers from an odd one on that have no small factor."""
    width = 4096
    while True:
        free = bytearray(b"\1" * width)
        for prime in _small_primes():
            # start + 2 i is a multiple of the prime for i = -start / 2 modulo the prime.
            first = -start * ((prime + 1) // 2) % prime
            free[first::prime] = bytes(len(range(first, width, prime)))
        yield from (start + 2 * step for step in range(width) if free[step])
        start += 2 * width


@cache
def _small_primes() -> tuple[int, ...]:
    free = bytearray(b"\1" * _TRIAL_LIMIT)
    for number in range(3, math.isqrt(_TRIAL_LIMIT) + 1, 2):
        if free[number]:
            free[number * number :: number] = bytes(len(range(number * number, _TRIAL_LIMIT, number)))
    return tuple(number for number in range(3, _TRIAL_LIMIT, 2) if free[number])


def is_probable_prime(number: int) -> bool:
    """Whether an odd number above 7 is a prime, by Miller and Rabin."""
    odd, twos = number - 1, 0
    while not odd & 1:
        odd, twos = odd >> 1, twos + 1
    for base in (2, 3, 5)[:_ROUNDS]:
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True
