"""The requests to the frontend of Online Boutique: what they read and write, and the pages they answer with.

Written after the behaviour of the public demo: a visitor is known by a cookie, carts are in Redis as .NET's distributed
cache stores them (a hash with the fields absexp, sldexp and data, where data is the protocol buffer of the cart), and
an order is nowhere but on the page that confirms it. The catalogue is a file in the image of its service.
"""

from __future__ import annotations

from html import escape
from http.cookies import CookieError, SimpleCookie
from uuid import UUID

from srearena.cluster.program_models import HttpResponse
from srearena.cluster.program_models.application_data import Exchange, StoreFailed, handles
from srearena.service.apps.astronomy_shop.programs import wire_format

APPLICATION = "online-boutique"
PRODUCTS = {
    "OLJCESPC7Z": ("Sunglasses", 1999),
    "66VCHSJNUP": ("Tank Top", 1899),
    "1YMWWN1N4O": ("Watch", 10999),
    "L9ECAV7KIM": ("Loafers", 8999),
    "2ZYFJ3GM2N": ("Hairdryer", 2499),
    "0PUK6V6EV0": ("Candle Holder", 1899),
    "LS4PSXUNUM": ("Salt & Pepper Shakers", 1849),
    "9SIQT8TOJO": ("Bamboo Glass Jar", 549),
    "6E92ZMYYFZ": ("Mug", 899),
}
"""Names and prices in US cents, as in products.json of the catalogue."""
_PER_EURO = {"USD": 1.1305, "EUR": 1.0, "CAD": 1.5128, "JPY": 126.40, "GBP": 0.85970, "TRY": 6.1247}
"""Rates of the currencies that the frontend offers, as in currency_conversion.json of the currency service."""
_SIGNS = {"USD": "$", "CAD": "$", "JPY": "¥", "EUR": "€", "TRY": "₺", "GBP": "£"}
_SHIPPING_CENTS = 899
"""The shipping service's quote for any number of items."""
_SESSION, _CURRENCY = "shop_session-id", "shop_currency"
_COOKIE_SECONDS = 48 * 3600
_RECOMMENDED = 4
_STYLES = "\n".join(
    f'    <link rel="stylesheet" type="text/css" href="/static/{path}">'
    for path in ("styles/styles.css", "styles/cart.css", "styles/order.css")
)


class _Visit:
    """The session and the currency that the cookies of a request name, with a new session where there is none."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(exchange.request.header("Cookie"))
        except CookieError:
            cookies.clear()
        known = cookies.get(_SESSION)
        self.is_new = known is None or not known.value
        self.session = known.value if known is not None and known.value else new_id(exchange)
        chosen = cookies.get(_CURRENCY)
        self.currency = chosen.value if chosen is not None and chosen.value in _PER_EURO else "USD"

    def headers(self, **more: str) -> dict[str, str]:
        found = {name.replace("_", "-"): value for name, value in more.items()}
        if self.is_new:
            found["Set-Cookie"] = f"{_SESSION}={self.session}; Max-Age={_COOKIE_SECONDS}"
        return found

    def price(self, cents: int) -> str:
        amount = cents / 100 * _PER_EURO[self.currency] / _PER_EURO["USD"]
        return f"{_SIGNS[self.currency]}{amount:.2f}"

    def page(self, *body: str) -> HttpResponse:
        options = "\n".join(
            f'          <option value="{code}"{" selected" if code == self.currency else ""}>{code}</option>'
            for code in _PER_EURO
        )
        quantity = sum(self.cart().values())
        badge = f'<span class="cart-size-circle">{quantity}</span>' if quantity else ""
        parts = (
            '<!DOCTYPE html>\n<html lang="en">\n  <head>\n    <meta charset="UTF-8">',
            '    <meta name="viewport" content="width=device-width, initial-scale=1.0, shrink-to-fit=no">',
            f"    <title>Online Boutique</title>\n{_STYLES}\n  </head>\n  <body>\n    <header>",
            '      <form method="POST" class="controls-form" action="/setCurrency" id="currency_form">',
            f'        <select name="currency_code">\n{options}\n        </select>\n      </form>',
            f'      <a href="/cart" class="cart-link">{badge}</a>\n    </header>\n    <main role="main">',
            *body,
            f"    </main>\n    <footer><p>session-id: {self.session}</p></footer>\n  </body>\n</html>\n",
        )
        return HttpResponse(200, "\n".join(parts).encode(), self.headers(Content_Type="text/html; charset=utf-8"))

    def redirect(self, to: str) -> HttpResponse:
        return HttpResponse(302, b"", self.headers(Location=to))

    # The cart

    def cart(self) -> dict[str, int]:
        found = self.exchange.redis("cartservice", "redis").command("HMGET", self.session, "absexp", "sldexp", "data")
        data = found[2] if isinstance(found, list) and len(found) == 3 else None
        return wire_format.items_of(data) if isinstance(data, bytes) else {}

    def store_cart(self, items: dict[str, int]) -> None:
        redis = self.exchange.redis("cartservice", "redis", "write")
        fields = ("absexp", -1, "sldexp", -1, "data", wire_format.cart(self.session, items))
        redis.command("HMSET", self.session, *fields)


def new_id(exchange: Exchange) -> str:
    return str(UUID(int=exchange.random.getrandbits(128), version=4))


def _product(number: str) -> tuple[str, int]:
    if number not in PRODUCTS:
        raise StoreFailed(
            f"could not retrieve product: rpc error: code = NotFound desc = no product with ID {escape(number)}"
        )
    return PRODUCTS[number]


def _card(visit: _Visit, number: str) -> str:
    name, cents = PRODUCTS[number]
    picture = f"/static/img/products/{name.lower().replace(' ', '-')}.jpg"
    return (
        f'      <div class="col-md-4 hot-product-card">\n        <a href="/product/{number}">\n'
        f'          <img loading="lazy" src="{picture}">\n        </a>\n'
        f'        <div class="hot-product-card-name">{escape(name)}</div>\n'
        f'        <div class="hot-product-card-price">{visit.price(cents)}</div>\n      </div>'
    )


def _recommendations(visit: _Visit, *in_view: str) -> str:
    others = [number for number in PRODUCTS if number not in in_view]
    chosen = visit.exchange.random.sample(others, min(_RECOMMENDED, len(others)))
    return "\n".join(
        ("    <section class=recommendations><h2>You May Also Like</h2>", *(_card(visit, n) for n in chosen))
    )


@handles(APPLICATION, "frontend", "home")
def home(exchange: Exchange) -> HttpResponse:
    visit = _Visit(exchange)
    return visit.page("      <h3>Hot Products</h3>", *(_card(visit, number) for number in PRODUCTS))


@handles(APPLICATION, "frontend", "product")
def product(exchange: Exchange) -> HttpResponse:
    visit = _Visit(exchange)
    number = exchange.request.path.rpartition("/")[2]
    name, cents = _product(number)
    quantities = "".join(f"<option>{quantity}</option>" for quantity in (1, 2, 3, 4, 5, 10))
    return visit.page(
        f'      <h2>{escape(name)}</h2>\n      <p class="product-price">{visit.price(cents)}</p>',
        '      <form method="POST" action="/cart">',
        f'        <input type="hidden" name="product_id" value="{number}" />',
        f'        <select name="quantity" id="quantity">{quantities}</select>',
        '        <button type="submit">Add To Cart</button>\n      </form>',
        _recommendations(visit, number),
    )


@handles(APPLICATION, "frontend", "cart")
def view_cart(exchange: Exchange) -> HttpResponse:
    visit = _Visit(exchange)
    items = visit.cart()
    if not items:
        return visit.page(
            "      <h3>Your shopping cart is empty!</h3>",
            "      <p>Items you add to your shopping cart will appear here.</p>",
            _recommendations(visit),
        )
    lines, total = _lines(visit, items)
    return visit.page(
        f"      <h3>Cart ({sum(items.values())})</h3>",
        *lines,
        f"      <div>Shipping</div><div>{visit.price(_SHIPPING_CENTS)}</div>",
        f"      <div>Total</div><div>{visit.price(total + _SHIPPING_CENTS)}</div>",
        _recommendations(visit, *items),
    )


def _lines(visit: _Visit, items: dict[str, int]) -> tuple[list[str], int]:
    lines, total = [], 0
    for number, quantity in items.items():
        name, cents = _product(number)
        total += cents * quantity
        lines.append(
            f'      <div class="cart-summary-item-row">\n        <h4>{escape(name)}</h4>\n'
            f"        <div>SKU #{number}</div>\n        <div>Quantity: {quantity}</div>\n"
            f"        <strong>{visit.price(cents * quantity)}</strong>\n      </div>"
        )
    return lines, total


@handles(APPLICATION, "frontend", "add")
def add_to_cart(exchange: Exchange) -> HttpResponse:
    visit = _Visit(exchange)
    number, quantity = exchange.form.get("product_id", ""), exchange.form.get("quantity", "")
    # The limits of the frontend's validator: one to ten of a product that is named.
    if not number or not quantity.isdigit() or not 1 <= int(quantity) <= 10:
        return HttpResponse.text("field 'Quantity' is invalid: gte\n", 422)
    _product(number)
    items = visit.cart()
    items[number] = items.get(number, 0) + int(quantity)
    visit.store_cart(items)
    return visit.redirect("/cart")


@handles(APPLICATION, "frontend", "empty")
def empty_cart(exchange: Exchange) -> HttpResponse:
    visit = _Visit(exchange)
    visit.store_cart({})
    return visit.redirect("/")


@handles(APPLICATION, "frontend", "currency")
def set_currency(exchange: Exchange) -> HttpResponse:
    visit = _Visit(exchange)
    code = exchange.form.get("currency_code", "")
    if code not in _PER_EURO:
        return HttpResponse.text("field 'Currency' is invalid: iso4217\n", 422)
    response = visit.redirect(exchange.request.header("Referer") or "/")
    response.headers["Set-Cookie"] = f"{_CURRENCY}={code}; Max-Age={_COOKIE_SECONDS}"
    return response


@handles(APPLICATION, "frontend", "logout")
def log_out(exchange: Exchange) -> HttpResponse:
    gone = f"{_SESSION}=; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=0"
    return HttpResponse(302, b"", {"Location": "/", "Set-Cookie": gone})


@handles(APPLICATION, "frontend", "checkout")
def check_out(exchange: Exchange) -> HttpResponse:
    visit, form = _Visit(exchange), exchange.form
    _charge(exchange, form)
    items = visit.cart()
    lines, total = _lines(visit, items)
    if exchange.succeeded("cartservice", "hipstershop.CartService/EmptyCart"):
        visit.store_cart({})
    return visit.page(
        "      <h3>Your order is complete!</h3>\n      <p>We've sent you a confirmation email.</p>",
        f"      <div>Confirmation #</div><div>{new_id(exchange)}</div>",
        f"      <div>Tracking #</div><div>{_tracking(exchange, form)}</div>",
        *lines,
        f"      <div>Total Paid</div><div>{visit.price(total + _SHIPPING_CENTS)}</div>",
        _recommendations(visit, *items),
    )


def _tracking(exchange: Exchange, form: dict[str, str]) -> str:
    """A tracking number has two letters, the length of the address, and ten digits in groups of three and seven."""
    letters = "".join(exchange.random.choice("ABCDEFGHIJKLMNOPQRSTUVWXY") for _ in range(2))
    address = f"{form.get('street_address', '')}, {form.get('city', '')}, {form.get('state', '')}"
    return f"{letters}-{len(address)}{exchange.random.randint(100, 999)}-{exchange.random.randint(10**6, 10**7 - 1)}"


def _charge(exchange: Exchange, form: dict[str, str]) -> None:
    """The payment service takes Visa and Mastercard numbers that pass the Luhn check and have not expired."""
    failed = (
        "failed to complete the order: rpc error: code = Internal desc = failed to charge card: could not charge the "
        "card: rpc error: code = Unknown desc = "
    )
    digits = [int(letter) for letter in form.get("credit_card_number", "") if letter.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    if not 12 < len(digits) < 20 or (sum(digits[-1::-2]) + sum(doubled)) % 10:
        raise StoreFailed(failed + "Credit card info is invalid")
    if digits[0] not in (4, 5):
        raise StoreFailed(failed + "Sorry, we cannot process the credit card. Only VISA or MasterCard is accepted.")
    year, month = (form.get(f"credit_card_expiration_{part}", "") for part in ("year", "month"))
    expires = (int(year) if year.isdigit() else 0, int(month) if month.isdigit() else 0)
    if expires < (exchange.today.year, exchange.today.month):
        last = "".join(map(str, digits[-4:]))
        raise StoreFailed(failed + f"Your credit card (ending {last}) expired on {expires[1]}/{expires[0]}")
