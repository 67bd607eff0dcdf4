"""What a careful engineer checks on a healthy system: what requests write is in the stores, and can be read back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from statistics import mean
from typing import Any

import httpx
import pytest

from srearena.application_model.loading import load_model
from srearena.service.apps.registry import find_application
from tests.apps.deployed import Deployed, deployed


@contextmanager
def _running(name: str) -> Iterator[Deployed]:
    with deployed(name, models=[find_application(name).folder]) as found:
        yield found


@pytest.fixture(scope="module")
def hotel() -> Iterator[Deployed]:
    with _running("hotel_reservation") as found:
        yield found


@pytest.fixture(scope="module")
def network() -> Iterator[Deployed]:
    with _running("social_network") as found:
        yield found


@pytest.fixture(scope="module")
def busy_network() -> Iterator[Deployed]:
    """Under load, until rates over four minutes are those of warm caches."""
    with _running("social_network") as found:
        assert found.application is not None
        found.application.start_workload(found.cluster)
        found.wait(420)
        yield found


@pytest.fixture(scope="module")
def shop() -> Iterator[Deployed]:
    with _running("astronomy_shop") as found:
        yield found


def _ask(running: Deployed, pod: str, *command: str) -> str:
    """The output of a command in the first pod whose name starts so."""
    assert running.application is not None
    namespace = running.application.namespace
    name = next(name for name in sorted(running.pods(namespace)) if name.startswith(pod))
    result = running.api.exec(name, list(command), namespace)
    assert result.status == 0, (result.output, result.errors)
    return result.output.strip()


def _mongo(running: Deployed, pod: str, database: str, script: str) -> Any:
    return json.loads(_ask(running, pod, "mongo", "--quiet", database, "--eval", f"JSON.stringify({script})"))


def _send(running: Deployed, method: str, path: str, body: str = "", kind: str = "") -> tuple[int, str]:
    application = running.application
    assert application is not None and application.frontend is not None
    reply = running.api.request_service(
        application.frontend.service,
        application.frontend.port,
        path,
        application.namespace,
        method=method,
        body=body.encode() or None,
        headers={"content-type": kind} if kind else {},
    )
    return reply.status, reply.text


def test_hotels_have_their_documents(hotel: Deployed) -> None:
    found = _mongo(hotel, "mongodb-profile", "profile-db", 'db.hotels.findOne({id: "1"}, {_id: 0})')
    assert found["name"] == "Clift Hotel" and found["address"]["city"] == "San Francisco"
    assert _mongo(hotel, "mongodb-user", "user-db", "db.user.count()") == 501
    rooms = _mongo(hotel, "mongodb-reservation", "reservation-db", 'db.number.findOne({hotelId: "7"}, {_id: 0})')
    assert rooms == {"hotelId": "7", "numberOfRoom": 300}


def test_responses_have_the_size_that_the_load_reports(hotel: Deployed) -> None:
    model = load_model(find_application("hotel_reservation").folder)
    [frontend] = [program for program in model.programs if program.name == "frontend"]
    reported = {name: operation.response_bytes for name, operation in frontend.operations.items()}
    random = Random(1)
    found: dict[str, list[int]] = {"search": [], "recommend": []}
    for _ in range(60):
        # As wrk2's script draws them.
        place = f"lat={38.0235 + random.uniform(-0.24, 0.24):.4f}&lon={-122.095 + random.uniform(-0.157, 0.169):.4f}"
        first = random.randint(9, 22)
        dates = f"inDate=2015-04-{first:02d}&outDate=2015-04-{random.randint(first + 1, 24)}"
        kind = random.choice(("dis", "rate", "price"))
        paths = {"search": f"/hotels?{dates}&{place}", "recommend": f"/recommendations?require={kind}&{place}"}
        for name, path in paths.items():
            found[name].append(len(hotel.api.request_service("frontend", 5000, path, "hotel-reservation").text))
    for name, sizes in found.items():
        assert mean(sizes) == pytest.approx(reported[name], rel=0.35), name
    assert reported["reserve"] == len('{"message":"Reserve successfully!"}')


def test_a_reservation_takes_a_room(hotel: Deployed) -> None:
    query = "inDate=2031-05-01&outDate=2031-05-03&lat=37.7&lon=-122.4&hotelId=3&customerName=Ada&number=2"
    status, text = _send(hotel, "POST", f"/reservation?{query}&username=Cornell_31&password=1111111111")
    assert (status, json.loads(text)) == (200, {"message": "Reserve successfully!"})
    script = 'db.reservation.find({customerName: "Ada"}, {_id: 0}).sort({inDate: 1}).toArray()'
    booked = _mongo(hotel, "mongodb-reservation", "reservation-db", script)
    night = {"hotelId": "3", "customerName": "Ada", "number": 2}
    assert booked == [
        {**night, "inDate": "2031-05-01", "outDate": "2031-05-02"},
        {**night, "inDate": "2031-05-02", "outDate": "2031-05-03"},
    ]


def test_what_an_operator_books_is_booked_for_visitors_too(hotel: Deployed) -> None:
    document = '{hotelId: "2", customerName: "Group", inDate: "2031-06-01", outDate: "2031-06-02", number: 200}'
    _ask(
        hotel,
        "mongodb-reservation",
        "mongo",
        "--quiet",
        "reservation-db",
        "--eval",
        f"db.reservation.insert({document})",
    )
    query = "inDate=2031-06-01&outDate=2031-06-02&lat=37.7&lon=-122.4&hotelId=2&customerName=Ada&number=1"
    _, text = _send(hotel, "POST", f"/reservation?{query}&username=Cornell_31&password=1111111111")
    assert json.loads(text) == {"message": "Failed. Already reserved. "}


def test_a_store_that_is_down_fails_what_needs_it(hotel: Deployed) -> None:
    assert hotel.application is not None
    namespace = hotel.application.namespace
    query = "inDate=2031-07-01&outDate=2031-07-02&lat=37.7&lon=-122.4&hotelId=2&customerName=Grace&number=1"
    path = f"/reservation?{query}&username=Cornell_31&password=1111111111"
    assert _send(hotel, "POST", path)[0] == 200
    hotel.api.patch("deployments", "mongodb-reservation", {"spec": {"replicas": 0}}, namespace)
    hotel.wait(60)
    assert _send(hotel, "POST", path)[0] == 500
    hotel.api.patch("deployments", "mongodb-reservation", {"spec": {"replicas": 1}}, namespace)
    hotel.wait(180)
    assert _mongo(hotel, "mongodb-reservation", "reservation-db", 'db.reservation.count({customerName: "Grace"})') == 1


def test_a_post_is_in_every_store_it_belongs_to(network: Deployed) -> None:
    form = "username=username_5&user_id=5&text=clear+skies+@username_9&media_ids=[]&media_types=[]&post_type=0"
    status, text = _send(network, "POST", "/wrk2-api/post/compose", form, "application/x-www-form-urlencoded")
    assert (status, text) == (200, "Successfully upload post\n")
    found = _mongo(network, "post-storage-mongodb", "post", "db.post.find({text: /clear skies/}, {_id: 0}).toArray()")
    [post] = found
    assert post["creator"] == {"user_id": 5, "username": "username_5"}
    assert post["user_mentions"] == [{"user_id": 9, "username": "username_9"}]
    number = str(post["post_id"])
    assert _ask(network, "user-timeline-redis", "redis-cli", "zrevrange", "5", "0", "0") == number
    assert _ask(network, "home-timeline-redis", "redis-cli", "zrevrange", "9", "0", "0") == number
    follower = _mongo(network, "social-graph-mongodb", "social-graph", "db['social-graph'].findOne({user_id: 5})")
    first = str(follower["followers"][0]["user_id"])
    assert _ask(network, "home-timeline-redis", "redis-cli", "zrevrange", first, "0", "0") == number
    timeline = json.loads(_send(network, "GET", "/wrk2-api/home-timeline/read?user_id=9&start=0&stop=5")[1])
    assert [entry["post_id"] for entry in timeline] == [number]


def test_a_cart_is_in_valkey_and_an_order_in_the_books(shop: Deployed) -> None:
    item = {"userId": "engineer", "item": {"productId": "OLJCESPC7Z", "quantity": 3}}
    status, _ = _send(shop, "POST", "/api/cart", json.dumps(item), "application/json")
    assert status == 200
    assert _ask(shop, "valkey", "valkey-cli", "exists", "engineer") == "1"
    assert 3500 < int(_ask(shop, "valkey", "valkey-cli", "ttl", "engineer")) <= 3600
    order = {
        "userId": "engineer",
        "email": "a@example.com",
        "address": {"streetAddress": "Main St 1", "city": "Bern", "state": "BE", "country": "CH", "zipCode": "3000"},
        "userCurrency": "USD",
        "creditCard": {
            "creditCardNumber": "4432801561520454",
            "creditCardCvv": 672,
            "creditCardExpirationMonth": 1,
            "creditCardExpirationYear": 2039,
        },
    }
    status, text = _send(shop, "POST", "/api/checkout", json.dumps(order), "application/json")
    assert status == 200, text
    placed = json.loads(text)
    shop.wait(10)
    query = (
        'SELECT o.order_id, i.product_id, i.quantity, s.city FROM accounting."order" o '
        "JOIN accounting.orderitem i ON i.order_id = o.order_id JOIN accounting.shipping s ON s.order_id = o.order_id "
        f"WHERE o.order_id = '{placed['orderId']}'"
    )
    rows = _ask(shop, "postgresql", "psql", "-U", "root", "-d", "otel", "-tA", "-c", query)
    assert rows == f"{placed['orderId']}|OLJCESPC7Z|3|Bern"


def _query(running: Deployed, expression: str) -> float:
    """The sum that Prometheus gives for an expression."""
    telemetry = running.cluster.telemetry
    headers = {"authorization": f"Bearer {telemetry.token}"} if telemetry.token else {}
    url = f"{telemetry.prometheus}/api/v1/query"
    answer = httpx.get(url, params={"query": f"sum({expression})"}, headers=headers).json()
    return sum(float(row["value"][1]) for row in answer["data"]["result"])


def test_counters_of_stores_agree_with_the_traffic(busy_network: Deployed) -> None:
    """Commands a second at each store are the calls a second of its clients, by their spans."""
    spans = "rate(traces_span_metrics_calls_total{%s}[4m])"
    pairs = (
        (
            'redis_commands_processed_total{pod=~"home-timeline-redis.*"}',
            'span_name=~"write_home_timeline_redis_update_client|read_home_timeline_redis_find_client"',
        ),
        (
            'mongodb_ss_opcounters{pod=~"post-storage-mongodb.*",legacy_op_type="insert"}',
            'span_name="post_storage_mongo_insert_client"',
        ),
        (
            'mongodb_ss_opcounters{pod=~"user-timeline-mongodb.*",legacy_op_type="update"}',
            'span_name="write_user_timeline_mongo_insert_client"',
        ),
    )
    for counter, span in pairs:
        commands, calls = _query(busy_network, f"rate({counter}[4m])"), _query(busy_network, spans % span)
        assert calls > 1 and commands == pytest.approx(calls, rel=0.05), counter
    lookups = _query(busy_network, spans % 'span_name="post_storage_mmc_mget_client"')
    gets = _query(busy_network, 'rate(memcached_commands_total{pod=~"post-storage-memcached.*",command="get"}[4m])')
    assert gets == pytest.approx(10 * lookups, rel=0.05)  # ten keys in a lookup
    hits, misses = (
        _query(busy_network, f'rate(redis_keyspace_{what}_total{{pod=~"social-graph-redis.*"}}[4m])')
        for what in ("hits", "misses")
    )
    assert hits > misses >= 0


def test_posts_of_the_load_are_counted(busy_network: Deployed) -> None:
    counted = _mongo(busy_network, "post-storage-mongodb", "post", "db.post.count()")
    inserted = _query(busy_network, 'mongodb_ss_opcounters{pod=~"post-storage-mongodb.*",legacy_op_type="insert"}')
    assert counted == pytest.approx(inserted, rel=0.1) and counted > 1000
    newest = _mongo(
        busy_network, "post-storage-mongodb", "post", "db.post.find({}, {_id: 0}).sort({_id: -1}).limit(1).toArray()"
    )
    user = newest[0]["creator"]["user_id"]
    timeline = _send(busy_network, "GET", f"/wrk2-api/user-timeline/read?user_id={user}&start=0&stop=10")[1]
    assert newest[0]["text"] in [post["text"] for post in json.loads(timeline)]


def _set_flags(shop: Deployed, text: str) -> None:
    """Change the flags; flagd reads its copy of them at the start."""
    assert shop.application is not None
    namespace = shop.application.namespace
    shop.api.patch("configmaps", "flagd-config", {"data": {"demo.flagd.json": text}}, namespace)
    for name in shop.pods(namespace):
        if name.startswith("flagd-"):
            shop.api.delete("pods", name, namespace)
    shop.wait(90)


def test_a_cart_that_cannot_be_emptied_keeps_its_items(shop: Deployed) -> None:
    """With the flag cartFailure an order is taken and its cart stays full."""
    assert shop.application is not None
    namespace = shop.application.namespace
    flags = shop.api.get("configmaps", "flagd-config", namespace)
    before = flags["data"]["demo.flagd.json"]
    document = json.loads(before)
    document["flags"]["cartFailure"]["defaultVariant"] = "on"
    _set_flags(shop, json.dumps(document))
    item = {"userId": "keeper", "item": {"productId": "OLJCESPC7Z", "quantity": 1}}
    _send(shop, "POST", "/api/cart", json.dumps(item), "application/json")
    card = {"creditCardNumber": "4432801561520454", "creditCardExpirationMonth": 1, "creditCardExpirationYear": 2039}
    order = {"userId": "keeper", "address": {}, "creditCard": card}
    assert _send(shop, "POST", "/api/checkout", json.dumps(order), "application/json")[0] == 200
    cart = json.loads(_send(shop, "GET", "/api/cart?sessionId=keeper")[1])
    assert [line["quantity"] for line in cart["items"]] == [1]
    _set_flags(shop, before)


def test_every_order_of_the_load_is_booked(shop: Deployed) -> None:
    shop.wait(600)
    counts = _ask(
        shop,
        "postgresql",
        *("psql", "-U", "root", "-d", "otel", "-tA", "-c"),
        """SELECT count(*), count(DISTINCT s.order_id) FROM accounting."order" o JOIN accounting.shipping s
           ON s.order_id = o.order_id""",
    )
    orders, shipped = map(int, counts.split("|"))
    placed = _query(shop, 'traces_span_metrics_calls_total{span_name="receive orders",service_name="accounting"}')
    assert orders == shipped == pytest.approx(placed, abs=5) and orders > 20
    assert int(_ask(shop, "valkey", "valkey-cli", "dbsize")) > orders
