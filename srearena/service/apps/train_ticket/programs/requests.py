"""Requests to Train Ticket that read and write its tables: logins, contacts, routes, orders and vouchers.

Written after the behaviour of the public services: an answer has a status (1 or 0), a message and data, and its HTTP
status is 200 also where the business fails.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any
from uuid import UUID

from srearena.cluster.program_models import HttpResponse
from srearena.cluster.program_models.application_data import Exchange, StoreFailed, handles
from srearena.service.apps.train_ticket.programs.data_sets import APPLICATION, password_hash, voucher_of

_TOKEN_SECONDS = 3600
_KEY = b"secret"
"""The key with which the services sign and check tokens."""
_CONTACT = {
    "id": "id",
    "accountId": "account_id",
    "name": "name",
    "documentType": "document_type",
    "documentNumber": "document_number",
    "phoneNumber": "phone_number",
}
"""Fields of a contact and their columns."""
_ORDER = {
    "id": "id",
    "boughtDate": "bought_date",
    "travelDate": "travel_date",
    "travelTime": "travel_time",
    "accountId": "account_id",
    "contactsName": "contacts_name",
    "documentType": "document_type",
    "contactsDocumentNumber": "contacts_document_number",
    "trainNumber": "train_number",
    "coachNumber": "coach_number",
    "seatClass": "seat_class",
    "seatNumber": "seat_number",
    "from": "from_station",
    "to": "to_station",
    "status": "status",
    "price": "price",
}
Row = dict[str, Any]


def _reply(status: int, message: str, data: object) -> HttpResponse:
    text = json.dumps({"status": status, "msg": message, "data": data}, separators=(",", ":"))
    return HttpResponse(200, text.encode(), {"Content-Type": "application/json"})


def _rows(exchange: Exchange, service: str, table: str, where: str = "", *values: object) -> list[Row]:
    connection = exchange.mysql(service, table)
    return connection.select(f"SELECT * FROM {connection.place(table)} {where}", *values)


def _named(row: Row, names: dict[str, str]) -> Row:
    return {name: row.get(column) for name, column in names.items()}


# Logins


@handles(APPLICATION, "ts-auth-service", "login")
def log_in(exchange: Exchange) -> HttpResponse:
    name, password = (str(exchange.document.get(key) or "") for key in ("username", "password"))
    found = _rows(exchange, "ts-auth-service", "auth_user", "WHERE username = ?", name)
    if not found or found[0]["password"] != password_hash(password):
        return _reply(0, "Incorrect username or password.", None)
    [user] = found[:1]
    now = int(exchange.now)
    claims = {
        "sub": name,
        "roles": [user["roles"]],
        "id": user["user_id"],
        "iat": now,
        "exp": now + _TOKEN_SECONDS,
    }
    return _reply(1, "login success", {"userId": user["user_id"], "username": name, "token": _token(claims)})


def _token(claims: Row) -> str:
    head, body = (_base64(json.dumps(part, separators=(",", ":")).encode()) for part in ({"alg": "HS256"}, claims))
    return f"{head}.{body}.{_base64(hmac.digest(_KEY, f'{head}.{body}'.encode(), hashlib.sha256))}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


# Contacts


@handles(APPLICATION, "ts-contacts-service", "create")
def create_contact(exchange: Exchange) -> HttpResponse:
    service, table = "ts-contacts-service", "contacts"
    wanted = {column: exchange.document.get(name) for name, column in _CONTACT.items() if name != "id"}
    same = "WHERE account_id = ? AND document_number = ? AND document_type = ?"
    keys = (str(wanted["account_id"]), str(wanted["document_number"]), _whole(wanted["document_type"]))
    if _rows(exchange, service, table, same, *keys):
        return _reply(0, "Contacts already exists", None)
    row = {**wanted, "id": str(UUID(int=exchange.random.getrandbits(128), version=4))}
    row |= dict(zip(("account_id", "document_number", "document_type"), keys, strict=True))
    exchange.mysql(service, table, action="write").insert(table, [row])
    return _reply(1, "Create contacts success", _named(row, _CONTACT))


def _whole(value: object) -> int:
    return int(str(value)) if str(value).isdigit() else 0


@handles(APPLICATION, "ts-contacts-service", "delete")
def delete_contact(exchange: Exchange) -> HttpResponse:
    number = exchange.request.path.rpartition("/")[2]
    exchange.mysql("ts-contacts-service", "contacts", action="write").delete("contacts", "id", number)
    return _reply(1, "Delete success", number)


@handles(APPLICATION, "ts-contacts-service", "read")
def read_contacts(exchange: Exchange) -> HttpResponse:
    head, _, last = exchange.request.path.rpartition("/")
    service, table = "ts-contacts-service", "contacts"
    if head.endswith("/account"):
        found = _rows(exchange, service, table, "WHERE account_id = ?", last)
        return _reply(1, "Success", [_named(row, _CONTACT) for row in found])
    if last == "contacts":
        found = _rows(exchange, service, table)
        shown = [_named(row, _CONTACT) for row in found]
        return _reply(1, "Success", shown) if shown else _reply(0, "No content", None)
    found = _rows(exchange, service, table, "WHERE id = ?", last)
    if not found:
        return _reply(0, "No contacts according to contacts id", None)
    return _reply(1, "Success", _named(found[0], _CONTACT))


# Stops and routes


@handles(APPLICATION, "ts-station-service", "stations")
def stations(exchange: Exchange) -> HttpResponse:
    found = _rows(exchange, "ts-station-service", "station", "ORDER BY rowid")
    shown = [{"id": row["station_id"], "name": row["name"], "stayTime": row["stay_time"]} for row in found]
    return _reply(1, "Find all content", shown) if shown else _reply(0, "No content", None)


def _route(row: Row) -> Row:
    return {
        "id": row["route_id"],
        "stations": str(row["stations"]).split(","),
        "distances": [_whole(distance) for distance in str(row["distances"]).split(",")],
        "startStation": row["start_station"],
        "endStation": row["end_station"],
    }


@handles(APPLICATION, "ts-route-service", "routes")
def routes(exchange: Exchange) -> HttpResponse:
    shown = [_route(row) for row in _rows(exchange, "ts-route-service", "route", "ORDER BY rowid")]
    return _reply(1, "Success", shown) if shown else _reply(0, "No Content", shown)


@handles(APPLICATION, "ts-route-service", "any")
def one_route(exchange: Exchange) -> HttpResponse:
    """One route by its identifier, or those between two stops."""
    _, _, rest = exchange.request.path.partition("/routes/")
    parts = rest.split("/")
    if len(parts) == 2:
        found = [_route(row) for row in _rows(exchange, "ts-route-service", "route", "ORDER BY rowid")]
        start, end = parts
        fit = [
            route
            for route in found
            if {start, end} <= set(route["stations"]) and route["stations"].index(start) < route["stations"].index(end)
        ]
        return _reply(1, "Success", fit) if fit else _reply(0, "No routes with the startId and terminalId", None)
    found = [_route(row) for row in _rows(exchange, "ts-route-service", "route", "WHERE route_id = ?", rest)]
    return _reply(1, "Success", found[0]) if found else _reply(0, "No content with the routeId", None)


# Orders and vouchers


@handles(APPLICATION, "ts-order-service", "refresh")
def refresh_orders(exchange: Exchange) -> HttpResponse:
    wanted = exchange.document
    found = _rows(exchange, "ts-order-service", "orders", "WHERE account_id = ?", str(wanted.get("loginId") or ""))
    if wanted.get("enableStateQuery"):
        found = [row for row in found if row["status"] == wanted.get("state")]
    return _reply(1, "Query Orders For Refresh Success", [_named(row, _ORDER) for row in found])


@handles(APPLICATION, "ts-order-service", "any")
def one_order(exchange: Exchange) -> HttpResponse:
    number = exchange.request.path.rpartition("/")[2]
    if number == "order":
        found = _rows(exchange, "ts-order-service", "orders")
        shown = [_named(row, _ORDER) for row in found]
        return _reply(1, "Success.", shown) if shown else _reply(0, "No Content.", None)
    found = _rows(exchange, "ts-order-service", "orders", "WHERE id = ?", number)
    return _reply(1, "Success.", _named(found[0], _ORDER)) if found else _reply(0, "Order Not Found", None)


@handles(APPLICATION, "ts-voucher-service", "getVoucher")
def voucher(exchange: Exchange) -> HttpResponse:
    """The voucher of an order, which is made when it is first asked for."""
    service, table = "ts-voucher-service", "voucher"
    number = str(exchange.document.get("orderId") or "")
    found = _rows(exchange, service, table, "WHERE order_id = ?", number)
    if not found:
        ordered = _rows(exchange, "ts-order-service", "orders", "WHERE id = ?", number)
        if not ordered:
            raise StoreFailed("'NoneType' object is not subscriptable")
        last = max((int(row["voucher_id"]) for row in _rows(exchange, service, table)), default=0)
        found = [voucher_of(ordered[0], last + 1)]
        exchange.mysql(service, table, action="write").insert(table, found)
    row = found[0]
    shown = {
        "voucher_id": row["voucher_id"],
        "order_id": row["order_id"],
        "travelDate": row["travelDate"],
        "contactName": row["contactName"],
        "train_number": row["trainNumber"],
        "seat_number": row["seatNumber"],
        "start_station": row["startStation"],
        "dest_station": row["destStation"],
        "price": row["price"],
    }
    return HttpResponse(200, json.dumps(shown).encode(), {"Content-Type": "text/html; charset=UTF-8"})
