"""Resource amounts as the server keeps them: rounded up to thousandths and written in canonical form.

A text that is no quantity is refused while the object is read, before any rule looks at it, so rules may parse freely.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.quantity import Quantity, QuantityError, parse
from srearena.cluster.embedded.registry.errors import BadRequest

_MILLI = 10**6


@lru_cache(maxsize=8192)
def _settled(text: str) -> str:
    amount = parse(text)
    if amount.nano % _MILLI:
        amount = Quantity(amount.milli_value() * _MILLI, amount.format)
    return str(amount)


def settled(value: Any) -> str:
    """The amount as it is stored; QuantityError where it is none."""
    return _settled(value if type(value) is str else str(parse(value)))


def settle(holder: Obj | None, *keys: str) -> None:
    """Bring the resource lists at `keys` of `holder` into stored form."""
    if not holder:
        return
    for key in keys:
        listed = holder.get(key)
        if listed:
            for name, value in listed.items():
                text = settled(value)
                if text != value:
                    listed[name] = text


def settle_one(holder: Obj, key: str) -> None:
    """Bring a single amount into canonical form; unlike lists, single amounts are not rounded."""
    value = holder.get(key)
    if value is not None:
        text = str(parse(value))
        if text != value:
            holder[key] = text


def reading(default: Callable[[Obj], None]) -> Callable[[Obj], None]:
    """Turn an unreadable quantity into the refusal that a server gives when it cannot decode an object."""

    @wraps(default)
    def read(obj: Obj) -> None:
        try:
            default(obj)
        except QuantityError as problem:
            kind, version = obj.get("kind", ""), str(obj.get("apiVersion", "")).rpartition("/")[2]
            raise BadRequest(f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}') from problem

    return read
