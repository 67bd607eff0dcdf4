"""What customers of Online Boutique do from end to end."""

from __future__ import annotations

import re

from srearena.service.journeys import Answer, Journey, Visitor

_CARD = "4432801561520454"
"""A test number of the demo's load generator."""
_SUNGLASSES, _MUG = "OLJCESPC7Z", "6E92ZMYYFZ"
_LINE = re.compile(r"SKU\s+#(\w+).*?Quantity:\s*(\d+)", re.DOTALL)


class _Customer:
    """A visitor with a session of its own; the shop knows customers by a cookie."""

    def __init__(self, visitor: Visitor, number: int) -> None:
        self._visitor = visitor
        self._headers = {"cookie": f"shop_session-id=5d1c8f3e-7b1a-4c1d-{number:04x}-{visitor.marker % 16**12:012x}"}

    def send(self, method: str, path: str, **form: object) -> Answer:
        return self._visitor.send(method, path, form=form or None, headers=self._headers)

    def check_out(self, card: str) -> Answer:
        return self.send(
            "POST",
            "/cart/checkout",
            email="someone@example.com",
            street_address="1600 Amphitheatre Parkway",
            zip_code=94043,
            city="Mountain View",
            state="CA",
            country="United States",
            credit_card_number=card,
            credit_card_expiration_month=1,
            credit_card_expiration_year=2039,
            credit_card_cvv=672,
        )

    def items(self) -> tuple[Answer, dict[str, int]]:
        page = self.send("GET", "/cart")
        page.must(page.status == 200, "a cart must be shown")
        return page, {product: int(quantity) for product, quantity in _LINE.findall(page.text)}


def order_sunglasses(visitor: Visitor) -> None:
    """Products are put into a cart, the cart shows them, a bad card is refused, and an order empties the cart."""
    customer, other = _Customer(visitor, 1), _Customer(visitor, 2)
    for product, quantity in ((_SUNGLASSES, 1), (_MUG, 2), (_MUG, 1)):
        added = customer.send("POST", "/cart", product_id=product, quantity=quantity)
        added.must(added.status in (200, 302), "a product must be put into the cart")
    page, items = customer.items()
    page.must(items == {_SUNGLASSES: 1, _MUG: 3}, "the cart must hold what was put into it")
    page, items = other.items()
    page.must(not items, "the cart of someone else must be empty")
    refused = customer.check_out("4432801561520455")
    refused.must(refused.status >= 400, "a card with a wrong number must be refused")
    order = customer.check_out(_CARD)
    order.must(order.status == 200 and "order is complete" in order.text, "an order must be accepted")
    paid = "$55.95"  # 19.99 + 3 * 8.99 + 8.99 for shipping
    order.must(paid in order.text, f"the order must cost {paid}")
    page, items = customer.items()
    page.must(not items, "an order must empty the cart")


def look_at_products(visitor: Visitor) -> None:
    """The first page leads to products with pages of their own; one that does not exist has none."""
    home = visitor.send("GET", "/")
    links = re.findall(r'href="[^"]*/product/(\w+)"', home.text)
    home.must(home.status == 200 and _SUNGLASSES in links and len(set(links)) >= 9, "products must be offered")
    page = visitor.send("GET", f"/product/{_SUNGLASSES}")
    page.must(page.status == 200 and "Sunglasses" in page.text and "$19.99" in page.text, "with name and price")
    missing = visitor.send("GET", f"/product/NONE{visitor.marker}")
    missing.must(missing.status >= 400, "a product that does not exist must not be shown")


JOURNEYS = (Journey("order sunglasses", order_sunglasses), Journey("look at products", look_at_products))
