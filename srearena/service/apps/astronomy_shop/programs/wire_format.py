"""Protocol buffers as the shop's services store them: carts in Valkey, orders in Kafka.

Only what the messages of the OpenTelemetry demo (pb/demo.proto) need: strings, whole numbers and nested messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from srearena.cluster.program_models.application_data import StoreFailed

Field = tuple[int, "str | int | bytes"]


def _varint(number: int) -> bytes:
    parts = bytearray()
    number &= (1 << 64) - 1
    while True:
        parts.append((number & 0x7F) | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(parts)


def message(fields: Iterable[Field]) -> bytes:
    """Encode fields by number; zeros and empty strings are left out, as proto3 does."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            if value:
                parts.append(_varint(number << 3) + _varint(value))
        elif value or isinstance(value, bytes):
            data = value.encode() if isinstance(value, str) else value
            parts.append(_varint(number << 3 | 2) + _varint(len(data)) + data)
    return b"".join(parts)


def fields_of(data: bytes) -> list[tuple[int, int | bytes]]:
    """Decode a message; StoreFailed for bytes that are none."""
    found: list[tuple[int, int | bytes]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    try:
        while at < len(data):
            tag = varint()
            if tag & 7 == 0:
                found.append((tag >> 3, varint()))
            elif tag & 7 == 2:
                size = varint()
                found.append((tag >> 3, data[at : at + size]))
                at += size
            else:
                raise StoreFailed("Protocol message contained an invalid tag (zero).")
    except IndexError:
        raise StoreFailed("While parsing a protocol message, the input ended unexpectedly.") from None
    return found


def cart(user: str, items: dict[str, int]) -> bytes:
    """oteldemo.Cart."""
    entries = (message(((1, product), (2, quantity))) for product, quantity in items.items())
    return message(((1, user), *((2, entry) for entry in entries)))


def items_of(data: bytes) -> dict[str, int]:
    """Products and quantities of an oteldemo.Cart."""
    items: dict[str, int] = {}
    for number, value in fields_of(data):
        if number == 2 and isinstance(value, bytes):
            entry = dict(fields_of(value))
            product, quantity = entry.get(1, b""), entry.get(2, 0)
            if isinstance(product, bytes) and isinstance(quantity, int):
                items[product.decode(errors="replace")] = quantity
    return items


def order(result: dict[str, Any]) -> bytes:
    """oteldemo.OrderResult."""
    address = result["shippingAddress"]
    lines = [
        message(
            (
                (1, message(((1, line["item"]["productId"]), (2, line["item"]["quantity"])))),
                (2, _money(line["cost"])),
            )
        )
        for line in result["items"]
    ]
    return message(
        (
            (1, result["orderId"]),
            (2, result["shippingTrackingId"]),
            (3, _money(result["shippingCost"])),
            (4, message(enumerate((address[name] for name in ADDRESS), 1))),
            *((5, line) for line in lines),
        )
    )


def _money(amount: dict[str, Any]) -> bytes:
    return message(((1, amount["currencyCode"]), (2, amount["units"]), (3, amount["nanos"])))


ADDRESS = ("streetAddress", "city", "state", "country", "zipCode")
"""Fields of oteldemo.Address, in their order."""
