"""The components of the applications that a fault may target, each with its callers up to the users' frontend.

`varies` of a family names functions from here. A test compares the table with the applications' manifests. An
application that is not listed keeps the registered target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = [
    "APPLICATIONS",
    "caller",
    "callers",
    "components",
    "dependents",
    "itself_and_callers",
    "named_by_dns",
    "stores",
]

_COMPOSE = ("compose-post-service", "nginx-thrift")
_TEXT = ("text-service", *_COMPOSE)
_SHOP = ("frontend", "frontend-proxy")
_BOUTIQUE = ("frontend",)
_CALLERS: dict[str, dict[str, tuple[str, ...]]] = {
    "hotel_reservation": {
        "geo": ("search", "frontend"),
        "profile": ("frontend",),
        "rate": ("search", "frontend"),
        "recommendation": ("frontend",),
        "reservation": ("frontend",),
        "search": ("frontend",),
        "user": ("frontend",),
    },
    "social_network": {
        "compose-post-service": ("nginx-thrift",),
        "home-timeline-service": ("nginx-thrift",),
        "media-service": _COMPOSE,
        "post-storage-service": _COMPOSE,
        "social-graph-service": ("home-timeline-service", "nginx-thrift"),
        "text-service": _COMPOSE,
        "unique-id-service": _COMPOSE,
        "url-shorten-service": _TEXT,
        "user-mention-service": _TEXT,
        "user-service": _COMPOSE,
        "user-timeline-service": ("nginx-thrift",),
    },
    "astronomy_shop": {
        "ad": _SHOP,
        "checkout": _SHOP,
        "currency": _SHOP,
        "payment": ("checkout", *_SHOP),
        "product-catalog": _SHOP,
        "quote": ("shipping", *_SHOP),
        "recommendation": _SHOP,
        "shipping": _SHOP,
    },
    "online_boutique": {
        "adservice": _BOUTIQUE,
        "cartservice": _BOUTIQUE,
        "checkoutservice": _BOUTIQUE,
        "currencyservice": _BOUTIQUE,
        "emailservice": ("checkoutservice", *_BOUTIQUE),
        "paymentservice": ("checkoutservice", *_BOUTIQUE),
        "productcatalogservice": _BOUTIQUE,
        "recommendationservice": _BOUTIQUE,
        "shippingservice": _BOUTIQUE,
    },
}
"""Without the frontends themselves, whose failure shows its origin at once."""
_CALL_NOBODY = frozenset(
    {"media-service", "unique-id-service", "ad", "currency", "payment", "quote", "adservice", "currencyservice"}
    | {"emailservice", "paymentservice", "productcatalogservice", "shippingservice"}
)
_HOTEL_STORES = ("geo", "profile", "rate", "recommendation", "reservation", "user")
Arguments = Mapping[str, Any]


def components(arguments: Arguments) -> Sequence[str]:
    """Services on the path of users' requests."""
    return tuple(_CALLERS.get(arguments["app"], ()))


def dependents(arguments: Arguments) -> Sequence[str]:
    """Components that call others by name."""
    return tuple(name for name in components(arguments) if name not in _CALL_NOBODY)


def named_by_dns(arguments: Arguments) -> Sequence[str]:
    """Components that their callers reach by the name of a Service; those of Hotel Reservation are found by Consul."""
    return () if arguments["app"] == "hotel_reservation" else components(arguments)


def stores(arguments: Arguments) -> Sequence[str]:
    """The databases of Hotel Reservation, each of which belongs to one service."""
    names = _HOTEL_STORES if arguments["app"] == "hotel_reservation" else ()
    return tuple(f"mongodb-{name}" for name in names)


def callers(arguments: Arguments) -> Sequence[tuple[str, ...]]:
    """The path from the target's caller to the frontend; the registered one for other targets."""
    path = _CALLERS.get(arguments["app"], {}).get(arguments["service"])
    return () if path is None else (path,)


def caller(arguments: Arguments) -> Sequence[str]:
    """The client of the target: the owner of a store, or its first caller."""
    service = str(arguments["service"])
    if service in stores(arguments):
        return (service.removeprefix("mongodb-"),)
    return tuple(path[0] for path in callers(arguments))


def itself_and_callers(arguments: Arguments) -> Sequence[tuple[str, ...]]:
    return tuple((arguments["service"], *path) for path in callers(arguments))


def one_of(choices: Mapping[str, Any], argument: str) -> Callable[[Arguments], Sequence[Any]]:
    """The value that belongs to what was drawn for another argument."""
    return lambda arguments: (choices[arguments[argument]],) if arguments[argument] in choices else ()


APPLICATIONS = tuple(_CALLERS)
