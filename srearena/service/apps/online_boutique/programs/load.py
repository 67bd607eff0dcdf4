"""Requests that write, as the load generator of Online Boutique makes them (its locustfile)."""

from __future__ import annotations

from random import Random
from urllib.parse import urlencode
from uuid import UUID

from srearena.cluster.program_models import HttpRequest
from srearena.cluster.program_models.application_data import load_sample
from srearena.service.apps.online_boutique.programs.requests import APPLICATION, PRODUCTS

_USERS = 10
"""Users that Locust plays unless told otherwise; each keeps its cookies, and so its cart."""


def _form(path: str, session: int, fields: dict[str, object]) -> HttpRequest:
    user = UUID(int=Random(session % _USERS).getrandbits(128), version=4)
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": f"shop_session-id={user}"}
    return HttpRequest("POST", path, headers, urlencode(fields).encode())


@load_sample(APPLICATION, "frontend", "add", every=10.0)
def add_to_cart(random: Random, session: int) -> HttpRequest:
    fields = {"product_id": random.choice(tuple(PRODUCTS)), "quantity": random.randint(1, 10)}
    return _form("/cart", session, fields)


@load_sample(APPLICATION, "frontend", "checkout", every=10.0)
def check_out(random: Random, session: int) -> HttpRequest:
    fields = {
        "email": "someone@example.com",
        "street_address": f"{random.randint(1, 9999)} Main Street",
        "zip_code": f"{random.randint(10000, 99999)}",
        "city": "Springfield",
        "state": "IL",
        "country": "United States",
        "credit_card_number": "4432801561520454",
        "credit_card_expiration_month": random.randint(1, 12),
        "credit_card_expiration_year": 2039,
        "credit_card_cvv": random.randint(100, 999),
    }
    return _form("/cart/checkout", session, fields)
