"""Kubernetes quantities: amounts of CPU, memory and storage ("100m", "1.5Gi", "1e3").

What always holds: an amount is an exact integer number of billionths (a finer input is rounded away from zero, so
that a positive request stays positive), and a quantity remembers the family of suffix it was written in, so that
what is written back is the same number in the same family with the largest suffix that loses nothing.
Parsing is cached, since a cluster contains the same few amounts thousands of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Final

NANO: Final = 10**9
_MAX_BINARY: Final = (2**63 - 1) * NANO
_MAX_LENGTH: Final = 512
_MAX_EXPONENT: Final = 512
_SHAPE: Final = re.compile(r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]{1,18})", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = ("", *_BINARY)

FORMAT_WRONG: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMERIC_WRONG: Final = "unable to parse numeric part of quantity"
SUFFIX_WRONG: Final = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """The text is no quantity; the message is the one a Kubernetes API server gives."""


class Format(Enum):
    """The three families of suffix."""

    DECIMAL_EXPONENT = "DecimalExponent"
    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"


class Quantity:
    """An exact amount and the suffix family it is written in. Immutable, ordered by amount alone."""

    __slots__ = ("_text", "format", "nano")

    nano: int
    format: Format
    _text: str | None

    def __init__(self, nano: int, format: Format = Format.DECIMAL_SI, text: str | None = None) -> None:
        self.nano = nano
        self.format = format
        self._text = text

    @classmethod
    def of(cls, units: int, format: Format = Format.DECIMAL_SI) -> Quantity:
        return cls(units * NANO, format)

    @classmethod
    def of_milli(cls, milli: int, format: Format = Format.DECIMAL_SI) -> Quantity:
        return cls(milli * 10**6, format)

    def scaled_value(self, exponent: int) -> int:
        """The amount in units of ten to `exponent`, rounded away from zero."""
        if exponent <= -9:
            return int(self.nano * 10 ** (-9 - exponent))
        return _divide_away(self.nano, int(10 ** (exponent + 9)))

    def value(self) -> int:
        """Whole units, rounded away from zero: bytes, pods, cores."""
        return _divide_away(self.nano, NANO)

    def milli_value(self) -> int:
        """Thousandths, rounded away from zero: millicores."""
        return _divide_away(self.nano, 10**6)

    def as_float(self) -> float:
        return self.nano / NANO

    @property
    def is_zero(self) -> bool:
        return self.nano == 0

    @property
    def sign(self) -> int:
        return (self.nano > 0) - (self.nano < 0)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __mul__(self, times: int) -> Quantity:
        return Quantity(self.nano * times, self.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.format)

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: Quantity) -> bool:
        return self.nano > other.nano

    def __ge__(self, other: Quantity) -> bool:
        return self.nano >= other.nano

    def __bool__(self) -> bool:
        return self.nano != 0

    def __str__(self) -> str:
        if self._text is None:
            self._text = _canonical(self.nano, self.format)
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


ZERO: Final = Quantity(0)


def parse(value: Any) -> Quantity:
    """The quantity a manifest's value means, as decoded JSON: a string or a number; null is zero."""
    if type(value) is str:
        return _parse_text(value)
    if type(value) is int or type(value) is float:
        return _parse_text(repr(value))
    if value is None:
        return ZERO
    raise QuantityError(FORMAT_WRONG)


def units(value: Any) -> int:
    """Whole units of a manifest's value, rounded up: `units("1.5Gi") == 1610612736`."""
    return _units_of_text(value) if type(value) is str else parse(value).value()


def milli(value: Any) -> int:
    """Thousandths of a manifest's value, rounded up: `milli("0.25") == 250`."""
    return _milli_of_text(value) if type(value) is str else parse(value).milli_value()


def canonical(value: Any) -> str:
    """A manifest's value as a Kubernetes API server would write it back."""
    return str(parse(value))


def total(values: Iterable[Any]) -> Quantity:
    """The sum of manifest values; its suffix family is that of the first one that is not zero."""
    result = ZERO
    for value in values:
        result = result + parse(value)
    return result


def add_resources(left: Mapping[str, Quantity], right: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Two resource lists summed by name."""
    result = dict(left)
    for name, amount in right.items():
        result[name] = result[name] + amount if name in result else amount
    return result


def _divide_away(amount: int, divisor: int) -> int:
    return -(-amount // divisor) if amount > 0 else amount // divisor


def _canonical(nano: int, format: Format) -> str:
    if nano == 0:
        return "0"
    if format is Format.BINARY_SI and abs(nano) >= 1024 * NANO and nano % NANO == 0:
        amount, power = nano // NANO, 0
        while power < 6 and amount % 1024 == 0:
            amount //= 1024
            power += 1
        return f"{amount}{_BINARY_SUFFIX[power]}"
    amount, exponent = nano, -9
    highest = _MAX_EXPONENT * 3 if format is Format.DECIMAL_EXPONENT else 18
    while exponent < highest and amount % 1000 == 0:
        amount //= 1000
        exponent += 3
    if format is Format.DECIMAL_EXPONENT:
        return f"{amount}e{exponent}" if exponent else str(amount)
    return f"{amount}{_DECIMAL_SUFFIX[exponent]}"


@lru_cache(maxsize=8192)
def _units_of_text(text: str) -> int:
    return _parse_text(text).value()


@lru_cache(maxsize=8192)
def _milli_of_text(text: str) -> int:
    return _parse_text(text).milli_value()


@lru_cache(maxsize=8192)
def _parse_text(text: str) -> Quantity:
    text = text.strip()
    if not text or len(text) > _MAX_LENGTH:
        raise QuantityError(FORMAT_WRONG)
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise QuantityError(FORMAT_WRONG)
    sign, whole, _, fraction, suffix = match.groups(default="")
    whole = whole.lstrip("0") or "0"
    digits = int(whole + fraction)
    if suffix in _BINARY:
        return _binary(text, sign, digits, len(fraction), _BINARY[suffix])
    if suffix in _DECIMAL:
        exponent, format = _DECIMAL[suffix], Format.DECIMAL_SI
    else:
        power = _EXPONENT.fullmatch(suffix)
        if power is None:
            raise QuantityError(SUFFIX_WRONG)
        exponent, format = int(power[1]), Format.DECIMAL_EXPONENT
        if exponent > _MAX_EXPONENT:
            raise QuantityError(NUMERIC_WRONG)
    scale = exponent - len(fraction)
    nano = _shift(digits, scale + 9)
    # A text that already is in canonical shape comes back letter for letter, with its own zeros and signs.
    shifted = whole + fraction
    kept = len(shifted) <= 18 and scale >= -9 and scale % 3 == 0 and shifted[0] != "0" and not shifted.endswith("000")
    return Quantity(-nano if sign == "-" else nano, format, text if kept else None)


def _binary(text: str, sign: str, digits: int, places: int, exponent: int) -> Quantity:
    nano = min(_shift(digits << exponent, 9 - places), _MAX_BINARY)
    kept = not places and digits & 7 != 0 and digits < 10 ** max(0, 14 - exponent * 3 // 10)
    below_one = 0 < nano < NANO
    format = Format.DECIMAL_SI if below_one else Format.BINARY_SI
    return Quantity(-nano if sign == "-" else nano, format, text if kept else None)


def _shift(digits: int, places: int) -> int:
    """Digits times ten to `places`, rounded up where places are lost."""
    if places >= 0:
        return int(digits * 10**places)
    if -places > _MAX_LENGTH * 2:
        return 1 if digits else 0
    return _divide_away(digits, int(10**-places))
