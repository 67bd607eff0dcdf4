"""The records with which the services of Train Ticket fill their tables at the first start.

Users, stops, routes, trains and contacts are those of the public system. A few orders of its test user are added,
for which the load generator asks vouchers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import UUID

from srearena.cluster.program_models.application_data import data_set

APPLICATION = "train-ticket"
USER_ID = "4d2a46c7-71cb-4cf1-b5bb-b68406d9da6f"
"""The account of the test user."""
_ADMIN_ID = "1d1a11c1-11cb-1cf1-b1bb-b11111d1da1f"
_USERS = ((USER_ID, "fdse_microservice", "111111", "ROLE_USER"), (_ADMIN_ID, "admin", "222222", "ROLE_ADMIN"))
_STATIONS = (
    ("Shang Hai", 10),
    ("Shang Hai Hong Qiao", 10),
    ("Tai Yuan", 5),
    ("Bei Jing", 10),
    ("Nan Jing", 8),
    ("Shi Jia Zhuang", 8),
    ("Xu Zhou", 7),
    ("Ji Nan", 5),
    ("Hang Zhou", 9),
    ("Jia Xing Nan", 2),
    ("Zhen Jiang", 2),
    ("Wu Xi", 3),
    ("Su Zhou", 3),
)
"""Names, and the minutes that trains stay; the identifier is the name without spaces in lower case."""
_ROUTES = (
    ("0b23bd3e-876a-4af3-b920-c50a90c90b04", "shanghai,nanjing,shijiazhuang,taiyuan", "0,350,1000,1300"),
    ("9fc9c261-3263-4bfa-82f8-bb44e06b2f52", "nanjing,xuzhou,jinan,beijing", "0,500,700,1200"),
    ("d693a2c5-ef87-4a3c-bef8-600b43f62c68", "taiyuan,shijiazhuang,nanjing,shanghai", "0,300,950,1300"),
    ("20eb7122-3a11-423f-b10a-be0dc5bce7db", "shanghai,taiyuan", "0,1300"),
    ("1367db1f-461e-4ab7-87ad-2bcc05fd9cb7", "shanghaihongqiao,jiaxingnan,hangzhou", "0,150,300"),
    ("92708982-77af-4318-be25-57ccb0ff69ad", "nanjing,zhenjiang,wuxi,suzhou,shanghai", "0,100,150,200,250"),
    ("aefcef3f-3f42-46e8-afd7-6cb2a928bd3d", "nanjing,shanghai", "0,250"),
    ("a3f256c1-0e43-4f7d-9c21-121bf258101f", "nanjing,suzhou,shanghai", "0,200,250"),
    ("084837bb-53c8-4438-87c8-0321a4d09917", "suzhou,shanghai", "0,50"),
    ("f3d4d4ef-693b-4456-8eed-59c0d717dd08", "shanghai,suzhou", "0,50"),
)
"""Identifier, stops and their distances from the first."""
_TRAINS = (
    ("GaoTieOne", 250),
    ("GaoTieTwo", 200),
    ("DongCheOne", 180),
    ("ZhiDa", 120),
    ("TeKuai", 120),
    ("KuaiSu", 90),
)
"""Types of trains and their average speed."""
_ORDERS = (
    ("5ad7750b-a68b-49c0-a8c0-32776b067701", "G1237", "nanjing", "shanghaihongqiao", 2, "FirstClass-30", "100.0"),
    ("8177ac5a-61ac-42f4-83f4-bd7b394d0531", "G1234", "shanghai", "beijing", 2, "FirstClass-30", "300.0"),
    ("d3c91694-d5b8-424c-9974-e14c89226e49", "G1235", "shanghai", "beijing", 3, "SecondClass-30", "350.0"),
)
"""Identifier, train, from, to, class of the seat, seat and price."""


def password_hash(password: str, salt: str = "70617373") -> str:
    """Spring Security's standard encoding: 1024 rounds of SHA-256, with the salt in front."""
    digest = bytes.fromhex(salt) + password.encode()
    for _ in range(1024):
        digest = hashlib.sha256(digest).digest()
    return f"{{sha256}}{salt}{digest.hex()}"


@data_set(APPLICATION, "accounts")
@cache
def accounts() -> list[dict[str, Any]]:
    return [
        {"user_id": number, "username": name, "password": password_hash(password), "roles": role}
        for number, name, password, role in _USERS
    ]


@data_set(APPLICATION, "users")
@cache
def users() -> list[dict[str, Any]]:
    number, name, _, _ = _USERS[0]
    return [
        {
            "user_id": number,
            "user_name": name,
            "gender": 1,
            "document_type": 1,
            "document_num": "2135488099312X",
            "email": "fdse_microservice@163.com",
        }
    ]


@data_set(APPLICATION, "stations")
@cache
def stations() -> list[dict[str, Any]]:
    return [
        {"station_id": name.replace(" ", "").lower(), "name": name, "stay_time": minutes} for name, minutes in _STATIONS
    ]


@data_set(APPLICATION, "routes")
@cache
def routes() -> list[dict[str, Any]]:
    return [
        {
            "route_id": number,
            "start_station": stops.split(",")[0],
            "end_station": stops.split(",")[-1],
            "stations": stops,
            "distances": distances,
        }
        for number, stops, distances in _ROUTES
    ]


@data_set(APPLICATION, "trains")
@cache
def trains() -> list[dict[str, Any]]:
    return [
        {"id": _id("train", name), "name": name, "economy_class": 2**31 - 1, "average_speed": speed}
        for name, speed in _TRAINS
    ]


@data_set(APPLICATION, "prices")
@cache
def prices() -> list[dict[str, Any]]:
    rates = {"GaoTieOne": (0.5, 1.0), "DongCheOne": (0.38, 1.0)}
    return [
        {
            "id": _id("price", f"{route}{train}"),
            "train_type": train,
            "route_id": route,
            "basic_price_rate": basic,
            "first_class_price_rate": first,
        }
        for route, _, _ in _ROUTES
        for train, (basic, first) in rates.items()
    ]


def _trips(prefix: str, train: str) -> list[dict[str, Any]]:
    return [
        {
            "trip_id": f"{prefix}{1234 + place}",
            "train_type": train,
            "route_id": number,
            "start_station": stops.split(",")[0],
            "terminal_station": stops.split(",")[-1],
            "start_time": f"2013-05-04 {7 + place:02d}:00:00",
        }
        for place, (number, stops, _) in enumerate(_ROUTES[:5])
    ]


@data_set(APPLICATION, "trips")
@cache
def trips() -> list[dict[str, Any]]:
    return _trips("G", "GaoTieOne")


@data_set(APPLICATION, "other-trips")
@cache
def other_trips() -> list[dict[str, Any]]:
    return _trips("Z", "ZhiDa")


@data_set(APPLICATION, "settings")
@cache
def settings() -> list[dict[str, Any]]:
    name = "DirectTicketAllocationProportion"
    text = "Allocation Proportion Of The Direct Ticket - From Start To End"
    return [{"config_name": name, "config_value": "0.5", "description": text}]


@data_set(APPLICATION, "limits")
@cache
def limits() -> list[dict[str, Any]]:
    rows = (("max_order_1_hour", "Max in 1 hour"), ("max_order_not_use", "Max not used"))
    return [
        {"id": _id("limit", name), "name": name, "value": str(2**31 - 1), "description": text} for name, text in rows
    ]


@data_set(APPLICATION, "contacts")
@cache
def contacts() -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "account_id": USER_ID,
            "document_number": f"DocumentNumber_{name}",
            "document_type": 1,
            "name": f"Contacts_{name}",
            "phone_number": f"ContactsPhoneNum_{name}",
        }
        for number, name in (
            ("4d2a46c7-71cb-4cf1-a5bb-b68406d9da6f", "One"),
            ("4d2546c7-71cb-4cf1-a5bb-b68406d9da6f", "Two"),
        )
    ]


@data_set(APPLICATION, "orders")
@cache
def orders() -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "account_id": USER_ID,
            "bought_date": "2023-01-01 08:00:00",
            "travel_date": "2023-01-05",
            "travel_time": "2013-05-04 09:00:00",
            "contacts_name": "Contacts_One",
            "contacts_document_number": "DocumentNumber_One",
            "document_type": 1,
            "train_number": train,
            "coach_number": 5,
            "seat_class": seat_class,
            "seat_number": seat,
            "from_station": start,
            "to_station": end,
            "status": 1,
            "price": price,
        }
        for number, train, start, end, seat_class, seat, price in _ORDERS
    ]


@data_set(APPLICATION, "first-voucher")
@cache
def first_voucher() -> list[dict[str, Any]]:
    return [voucher_of(orders()[0], 1)]


def voucher_of(order: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The row of an order's voucher."""
    return {
        "voucher_id": number,
        "order_id": order["id"],
        "travelDate": order["travel_date"],
        "travelTime": order["travel_time"],
        "contactName": order["contacts_name"],
        "trainNumber": order["train_number"],
        "seatClass": order["seat_class"],
        "seatNumber": order["seat_number"],
        "startStation": order["from_station"],
        "destStation": order["to_station"],
        "price": float(order["price"]),
    }


def _id(kind: str, name: str) -> str:
    """An identifier that is the same in every installation, in the place of a random one."""
    return str(UUID(bytes=hashlib.md5(f"{kind} {name}".encode(), usedforsecurity=False).digest(), version=4))
