"""The requests to the shop's frontend: what they read and write, and what they answer.

Written after the public API of the OpenTelemetry demo: carts are in Valkey, products and reviews in PostgreSQL; an
order empties the cart and goes to Kafka, and accounting books it in PostgreSQL when it has consumed the message.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from srearena.cluster.program_models import HttpResponse
from srearena.cluster.program_models.application_data import Exchange, StoreFailed, consumes, handles
from srearena.service.apps.astronomy_shop.programs import wire_format

APPLICATION = "astronomy-shop"
_CART_SECONDS = 3600
"""Carts expire an hour after their last change."""
_CURRENCIES = tuple(
    "AUD BGN BRL CAD CHF CNY CZK DKK EUR GBP HKD HRK HUF IDR ILS INR ISK JPY KRW MXN MYR NOK NZD PHP PLN RON RUB SEK "
    "SGD THB TRY USD ZAR".split()
)
_SHIPPING_CENTS = 899
"""Cents per item that shipping costs. Chosen: the demo's quote service draws it anew for every order."""
_RECOMMENDED = 4
_NANOS = 1_000_000_000


def _json(value: object, status: int = 200) -> HttpResponse:
    body = json.dumps(value, separators=(",", ":")).encode()
    return HttpResponse(status, body, {"Content-Type": "application/json; charset=utf-8"})


def _new_id(exchange: Exchange) -> str:
    return str(UUID(int=exchange.random.getrandbits(128), version=4))


# Products


def _products(exchange: Exchange, *ids: str) -> list[dict[str, Any]]:
    """The products with these ids in their order, or all of them."""
    rows = exchange.postgres("product-catalog", "catalog.products").select("SELECT * FROM catalog.products")
    found = {
        row["id"]: {
            "id": row["id"],
            "name": row["name"],
            "description": row["description"],
            "picture": row["picture"],
            "priceUsd": {
                "currencyCode": row["price_currency_code"],
                "units": row["price_units"],
                "nanos": row["price_nanos"],
            },
            "categories": str(row["categories"] or "").split(","),
        }
        for row in rows
    }
    if not ids:
        return list(found.values())
    for product in ids:
        if product not in found:
            raise StoreFailed(f"5 NOT_FOUND: Product Not Found: {product}")
    return [found[product] for product in ids]


@handles(APPLICATION, "frontend", "products")
def products(exchange: Exchange) -> HttpResponse:
    return _json(_products(exchange))


@handles(APPLICATION, "frontend", "product")
def product(exchange: Exchange) -> HttpResponse:
    return _json(_products(exchange, exchange.request.path.rpartition("/")[2])[0])


@handles(APPLICATION, "frontend", "recommendations")
def recommendations(exchange: Exchange) -> HttpResponse:
    """Other products than those in the request."""
    shown_ids = exchange.request.query.get("productIds", [])
    others = [found for found in _products(exchange) if found["id"] not in shown_ids]
    return _json(exchange.random.sample(others, min(_RECOMMENDED, len(others))))


@handles(APPLICATION, "frontend", "reviews")
def reviews(exchange: Exchange) -> HttpResponse:
    found = _reviews(exchange)
    return _json([{key: row[key] for key in ("username", "description", "score")} for row in found])


@handles(APPLICATION, "frontend", "score")
def score(exchange: Exchange) -> HttpResponse:
    scores = [float(row["score"]) for row in _reviews(exchange)]
    return _json(f"{sum(scores) / len(scores):.1f}" if scores else "0.0")


def _reviews(exchange: Exchange) -> list[dict[str, Any]]:
    statement = "SELECT username, description, score FROM reviews.productreviews WHERE product_id = ? ORDER BY id"
    connection = exchange.postgres("product-reviews", "reviews.productreviews")
    return connection.select(statement, exchange.request.path.rpartition("/")[2])


@handles(APPLICATION, "frontend", "currency")
def currencies(exchange: Exchange) -> HttpResponse:
    return _json(_CURRENCIES)


# Carts


def _cart(exchange: Exchange, user: str) -> dict[str, int]:
    data = exchange.redis("cart", "valkey", "read", "cart").command("HGET", user, "cart")
    return wire_format.items_of(data) if isinstance(data, bytes) else {}


def _store_cart(exchange: Exchange, user: str, items: dict[str, int]) -> None:
    valkey = exchange.redis("cart", "valkey", "write", "cart")
    valkey.command("HMSET", user, "cart", wire_format.cart(user, items))
    valkey.command("EXPIRE", user, _CART_SECONDS)


def _lines(items: dict[str, int]) -> list[dict[str, Any]]:
    return [{"productId": product, "quantity": quantity} for product, quantity in items.items()]


@handles(APPLICATION, "frontend", "view-cart")
def view_cart(exchange: Exchange) -> HttpResponse:
    user = exchange.query.get("sessionId", "")
    items = _cart(exchange, user)
    found = {product["id"]: product for product in _products(exchange, *items)} if items else {}
    lines = [{**line, "product": found[line["productId"]]} for line in _lines(items)]
    return _json({"userId": user, "items": lines})


@handles(APPLICATION, "frontend", "add-to-cart")
def add_to_cart(exchange: Exchange) -> HttpResponse:
    user, item = str(exchange.document.get("userId") or ""), exchange.document.get("item") or {}
    items = _cart(exchange, user)
    if item.get("productId"):
        items[item["productId"]] = items.get(item["productId"], 0) + int(item.get("quantity", 1))
    _store_cart(exchange, user, items)
    return _json({"userId": user, "items": _lines(items)})


@handles(APPLICATION, "frontend", "empty-cart")
def empty_cart(exchange: Exchange) -> HttpResponse:
    _store_cart(exchange, str(exchange.document.get("userId") or ""), {})
    return HttpResponse(204)


# Orders


@handles(APPLICATION, "frontend", "checkout")
def check_out(exchange: Exchange) -> HttpResponse:
    wanted = exchange.document
    user, address, card = str(wanted.get("userId") or ""), wanted.get("address") or {}, wanted.get("creditCard") or {}
    _charge(exchange, card)
    items = _cart(exchange, user)
    prices = {found["id"]: found for found in _products(exchange, *items)} if items else {}
    cents = _SHIPPING_CENTS * sum(items.values())
    result: dict[str, Any] = {
        "orderId": _new_id(exchange),
        "shippingTrackingId": _new_id(exchange),
        "shippingCost": {"currencyCode": "USD", "units": cents // 100, "nanos": cents % 100 * (_NANOS // 100)},
        "shippingAddress": {name: str(address.get(name, "")) for name in wire_format.ADDRESS},
        "items": [{"item": line, "cost": prices[line["productId"]]["priceUsd"]} for line in _lines(items)],
    }
    if exchange.succeeded("cart", "EmptyCart"):
        _store_cart(exchange, user, {})
    exchange.publish("checkout", "kafka", "orders", wire_format.order(result), result)
    shown = [
        {**line, "item": {**line["item"], "product": prices[line["item"]["productId"]]}} for line in result["items"]
    ]
    return _json({**result, "items": shown})


def _charge(exchange: Exchange, card: dict[str, Any]) -> None:
    """The payment service takes Visa and Mastercard numbers that pass the Luhn check and have not expired."""
    failed = "13 INTERNAL: failed to charge card: could not charge the card: rpc error: code = Unknown desc = "
    digits = [int(letter) for letter in str(card.get("creditCardNumber", "")) if letter.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    if not 12 < len(digits) < 20 or (sum(digits[-1::-2]) + sum(doubled)) % 10:
        raise StoreFailed(failed + "Credit card info is invalid.")
    if digits[0] not in (4, 5):
        raise StoreFailed(failed + "Sorry, we cannot process the credit card. Only VISA or MasterCard is accepted.")
    today = exchange.today
    expires = (int(card.get("creditCardExpirationYear") or 0), int(card.get("creditCardExpirationMonth") or 0))
    if expires < (today.year, today.month):
        last = "".join(map(str, digits[-4:]))
        raise StoreFailed(failed + f"The credit card (ending {last}) expired on {expires[1]}/{expires[0]}.")


@consumes(APPLICATION, "accounting", "order-consumed")
def book_order(exchange: Exchange, result: dict[str, Any]) -> None:
    """The rows that accounting writes for an order."""
    books = exchange.postgres("accounting", "accounting.order", action="write")
    cost, address = result["shippingCost"], result["shippingAddress"]
    books.insert("accounting.order", [{"order_id": result["orderId"]}])
    items = [
        {
            "item_cost_currency_code": line["cost"]["currencyCode"],
            "item_cost_units": line["cost"]["units"],
            "item_cost_nanos": line["cost"]["nanos"],
            "product_id": line["item"]["productId"],
            "quantity": line["item"]["quantity"],
            "order_id": result["orderId"],
        }
        for line in result["items"]
    ]
    if items:
        books.insert("accounting.orderitem", items)
    books.insert(
        "accounting.shipping",
        [
            {
                "shipping_tracking_id": result["shippingTrackingId"],
                "shipping_cost_currency_code": cost["currencyCode"],
                "shipping_cost_units": cost["units"],
                "shipping_cost_nanos": cost["nanos"],
                "street_address": address["streetAddress"],
                "city": address["city"],
                "state": address["state"],
                "country": address["country"],
                "zip_code": address["zipCode"],
                "order_id": result["orderId"],
            }
        ],
    )
