"""Requests that write, as the load generator of the Astronomy Shop makes them (its locustfile)."""

from __future__ import annotations

import json
from random import Random
from uuid import UUID

from srearena.cluster.program_models import HttpRequest
from srearena.cluster.program_models.application_data import load_sample
from srearena.service.apps.astronomy_shop.programs.requests import APPLICATION

_PRODUCTS = tuple(
    "0PUK6V6EV0 1YMWWN1N4O 2ZYFJ3GM2N 66VCHSJNUP 6E92ZMYYFZ 9SIQT8TOJO L9ECAV7KIM LS4PSXUNUM OLJCESPC7Z "
    "HQTGWGPNH4".split()
)
_PEOPLE = (
    ("larry_sergei@example.com", "1600 Amphitheatre Parkway", "94043", "Mountain View", "CA"),
    ("bill@example.com", "One Microsoft Way", "98052", "Redmond", "WA"),
    ("steve@example.com", "One Apple Park Way", "95014", "Cupertino", "CA"),
)
_JSON = {"Content-Type": "application/json"}


def _user(session: int) -> str:
    """The user of a session: carts and orders of one session belong together."""
    return str(UUID(int=Random(session).getrandbits(128), version=1))


@load_sample(APPLICATION, "frontend", "add-to-cart", every=10.0)
def add_to_cart(random: Random, session: int) -> HttpRequest:
    item = {"productId": random.choice(_PRODUCTS), "quantity": random.choice((1, 2, 3, 4, 5, 10))}
    return HttpRequest("POST", "/api/cart", _JSON, json.dumps({"item": item, "userId": _user(session)}).encode())


@load_sample(APPLICATION, "frontend", "checkout", every=10.0)
def check_out(random: Random, session: int) -> HttpRequest:
    email, street, code, city, state = random.choice(_PEOPLE)
    order = {
        "userId": _user(session),
        "email": email,
        "address": {"streetAddress": street, "zipCode": code, "city": city, "state": state, "country": "United States"},
        "userCurrency": "USD",
        "creditCard": {
            "creditCardNumber": "4432801561520454",
            "creditCardExpirationMonth": 1,
            "creditCardExpirationYear": 2039,
            "creditCardCvv": 672,
        },
    }
    return HttpRequest("POST", "/api/checkout", _JSON, json.dumps(order).encode())
