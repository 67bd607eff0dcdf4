"""What customers of the Astronomy Shop do from end to end."""

from __future__ import annotations

from typing import Any

from srearena.service.journeys import Answer, Journey, Visitor

_CARD = {
    "creditCardNumber": "4432801561520454",
    "creditCardCvv": 672,
    "creditCardExpirationMonth": 1,
    "creditCardExpirationYear": 2039,
}
"""A test number of the demo's load generator."""
_ADDRESS = {
    "streetAddress": "1600 Amphitheatre Parkway",
    "city": "Mountain View",
    "state": "CA",
    "country": "United States",
    "zipCode": "94043",
}
_USD = {"currencyCode": "USD"}


def _check_out(visitor: Visitor, user: str, card: dict[str, Any]) -> Answer:
    return visitor.send(
        "POST",
        "/api/checkout",
        _USD,
        body={
            "userId": user,
            "email": "someone@example.com",
            "address": _ADDRESS,
            "userCurrency": "USD",
            "creditCard": card,
        },
    )


def _items(answer: Answer) -> dict[str, int]:
    answer.must(answer.status == 200, "a cart must be readable")
    found = answer.document
    answer.must(isinstance(found, dict) and isinstance(found.get("items"), list), "a cart has items")
    return {str(item["productId"]): int(item["quantity"]) for item in found["items"]}


def order_telescopes(visitor: Visitor) -> None:
    """Products are put into a cart, the cart shows them, a bad card is refused, and an order empties the cart."""
    user = f"0b6e9c1a-4c1d-4b7e-9f00-{visitor.marker % 16**12:012x}"
    listing = visitor.send("GET", "/api/products", _USD)
    listing.must(listing.status == 200, "the catalogue must be readable")
    catalogue = listing.document
    listing.must(isinstance(catalogue, list) and len(catalogue) >= 2, "there must be products")
    first, second = (str(product["id"]) for product in catalogue[:2])
    for product, quantity in ((first, 1), (second, 2)):
        added = visitor.send(
            "POST", "/api/cart", _USD, body={"userId": user, "item": {"productId": product, "quantity": quantity}}
        )
        added.must(added.status == 200, "a product must be put into the cart")
    cart = visitor.send("GET", "/api/cart", {"sessionId": user, **_USD})
    cart.must(_items(cart) == {first: 1, second: 2}, "the cart must hold what was put into it")
    other = visitor.send("GET", "/api/cart", {"sessionId": f"{user}-other", **_USD})
    other.must(not _items(other), "the cart of someone else must be empty")
    refused = _check_out(visitor, user, {**_CARD, "creditCardNumber": "4432801561520455"})
    refused.must(refused.status >= 400, "a card with a wrong number must be refused")
    order = _check_out(visitor, user, _CARD)
    order.must(order.status == 200, "an order must be accepted")
    placed = order.document
    order.must(isinstance(placed, dict) and bool(placed.get("orderId")), "an order has a number")
    ordered = {str(line["item"]["productId"]): int(line["item"]["quantity"]) for line in placed.get("items", ())}
    order.must(ordered == {first: 1, second: 2}, "the order must be for what was in the cart")
    after = visitor.send("GET", "/api/cart", {"sessionId": user, **_USD})
    after.must(not _items(after), "an order must empty the cart")


def look_at_products(visitor: Visitor) -> None:
    """Every product has a page of its own; one that does not exist has none."""
    listing = visitor.send("GET", "/api/products", _USD)
    listing.must(listing.status == 200 and isinstance(listing.document, list), "the catalogue must be readable")
    for product in listing.document[:3]:
        page = visitor.send("GET", f"/api/products/{product['id']}", _USD)
        page.must(page.status == 200, "a product must be shown")
        page.must(isinstance(page.document, dict) and page.document.get("name") == product["name"], "with its own name")
    missing = visitor.send("GET", f"/api/products/NONE{visitor.marker}", _USD)
    missing.must(missing.status >= 400, "a product that does not exist must not be shown")


JOURNEYS = (Journey("order telescopes", order_telescopes), Journey("look at products", look_at_products))
