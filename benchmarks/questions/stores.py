"""Questions about the data of single applications: what is written is in the stores, and their counters show it."""

from __future__ import annotations

import json

from benchmarks.questions.engineer import Engineer, Question, must, must_agree

_CARD = {"creditCardNumber": "4432801561520454", "creditCardExpirationMonth": 1, "creditCardExpirationYear": 2039}


# Hotel Reservation


def hotel_has_its_reservation(engineer: Engineer) -> None:
    """Is a reservation in MongoDB?"""
    name = f"engineer_{engineer.marker()}"
    query = {"inDate": "2044-05-01", "outDate": "2044-05-02", "lat": 37.7, "lon": -122.4, "hotelId": 3, "number": 1}
    login = {"customerName": name, "username": "Cornell_31", "password": "1111111111"}
    status, text = engineer.send("POST", "/reservation", query=query | login)
    must(status == 200 and "Reserve successfully!" in text, text)
    script = f'db.reservation.find({{customerName: "{name}"}}, {{_id: 0}}).toArray()'
    booked = engineer.mongo("mongodb-reservation", "reservation-db", script)
    must([one["inDate"] for one in booked] == ["2044-05-01"], f"{booked}")


def hotel_counters_agree(engineer: Engineer) -> None:
    """Do the counters of the stores follow the traffic?"""
    reserved = engineer.calls('span_name="HTTP POST /reservation",span_kind="SPAN_KIND_SERVER"')
    inserted = engineer.rate('mongodb_ss_opcounters{pod=~"mongodb-reservation.*",legacy_op_type="insert"}')
    must(reserved > 0 and inserted > 0, f"{reserved:g} reservations and {inserted:g} inserts a second")
    lookups = engineer.calls('span_name="/profile.Profile/GetProfiles",span_kind="SPAN_KIND_SERVER"')
    gets = engineer.rate('memcached_commands_total{pod=~"memcached-profile.*",command="get"}')
    must(gets >= lookups > 0, f"{lookups:g} lookups and {gets:g} gets a second")


# Social Network


def post_is_in_the_stores(engineer: Engineer) -> None:
    """Is a post in MongoDB and on the timelines in Redis?"""
    text = f"clear skies {engineer.marker()}"
    form = {
        "username": "username_5",
        "user_id": 5,
        "text": text,
        "media_ids": "[]",
        "media_types": "[]",
        "post_type": 0,
    }
    status, answer = engineer.send("POST", "/wrk2-api/post/compose", form=form)
    must(status == 200, answer)
    found = engineer.mongo("post-storage-mongodb", "post", f'db.post.find({{text: "{text}"}}, {{_id: 0}}).toArray()')
    must(len(found) == 1 and found[0]["creator"]["user_id"] == 5, f"{found}")
    newest = engineer.run("user-timeline-redis", "redis-cli", "zrevrange", "5", "0", "4").splitlines()
    must(str(found[0]["post_id"]) in newest, f"{found[0]['post_id']} is not among {newest}")


def post_counters_agree(engineer: Engineer) -> None:
    """Do the counters of the stores follow the traffic?"""
    spans = 'span_name=~"write_home_timeline_redis_update_client|read_home_timeline_redis_find_client"'
    commands = engineer.rate('redis_commands_processed_total{pod=~"home-timeline-redis.*"}')
    must_agree(commands, engineer.calls(spans), "commands of Redis and calls")
    inserted = engineer.rate('mongodb_ss_opcounters{pod=~"post-storage-mongodb.*",legacy_op_type="insert"}')
    must_agree(inserted, engineer.calls('span_name="post_storage_mongo_insert_client"'), "inserts and calls")
    counted = engineer.mongo("post-storage-mongodb", "post", "db.post.count()")
    total = engineer.total('mongodb_ss_opcounters{pod=~"post-storage-mongodb.*",legacy_op_type="insert"}')
    must_agree(counted, total, "posts and inserts", share=0.1)


# Online Boutique


def boutique_has_its_cart(engineer: Engineer) -> None:
    """Is a cart in Redis, as the cart service stores it?"""
    session = f"engineer-{engineer.marker()}"
    headers = {"cookie": f"shop_session-id={session}"}
    status, _ = engineer.send("POST", "/cart", form={"product_id": "6E92ZMYYFZ", "quantity": 7}, headers=headers)
    must(status == 302, f"status {status}")
    must("6E92ZMYYFZ" in engineer.run("redis-cart", "redis-cli", "hget", session, "data"), "the cart is not in Redis")
    must("Quantity: 7" in engineer.send("GET", "/cart", headers=headers)[1], "the cart does not show it")


def boutique_counters_agree(engineer: Engineer) -> None:
    """Do the counters of Redis follow the traffic?"""
    reads, empties, adds = (
        engineer.calls(f'span_name="hipstershop.CartService/{name}",span_kind="SPAN_KIND_CLIENT"')
        for name in ("GetCart", "EmptyCart", "AddItem")
    )
    commands = engineer.rate("redis_commands_processed_total")
    # A product that is added is read and written.
    must_agree(commands, reads + empties + 2 * adds, "commands of Redis and calls of carts", absolute=0.1)
    keys = int(engineer.run("redis-cart", "redis-cli", "dbsize"))
    must_agree(engineer.total("redis_db_keys"), keys, "keys by exporter and by client", absolute=3)
    must(keys >= 5, f"{keys} carts of ten users")


# Astronomy Shop


def order_is_in_the_books(engineer: Engineer) -> None:
    """Is a cart in Valkey, and an order in PostgreSQL?"""
    user = f"engineer-{engineer.marker()}"
    item = {"userId": user, "item": {"productId": "OLJCESPC7Z", "quantity": 3}}
    must(engineer.send("POST", "/api/cart", body=item)[0] == 200, "a product cannot be added")
    must(engineer.run("valkey", "valkey-cli", "exists", user) == "1", "the cart is not in Valkey")
    address = {"streetAddress": "Main St 1", "city": "Bern", "state": "BE", "country": "CH", "zipCode": "3000"}
    order = {"userId": user, "email": "a@example.com", "address": address, "userCurrency": "USD", "creditCard": _CARD}
    status, text = engineer.send("POST", "/api/checkout", body=order)
    must(status == 200, text)
    engineer.cluster.wait(15)
    number = json.loads(text)["orderId"]
    statement = f"SELECT quantity FROM accounting.orderitem WHERE order_id = '{number}'"
    must(_psql(engineer, statement) == "3", "the order is not in the books")


def _psql(engineer: Engineer, statement: str) -> str:
    return engineer.run("postgresql", "psql", "-U", "root", "-d", "otel", "-tA", "-c", statement)


def orders_agree(engineer: Engineer) -> None:
    """Are as many orders in the books as were published and consumed?"""
    rows = int(_psql(engineer, 'SELECT count(*) FROM accounting."order"'))
    published = engineer.total('kafka_topic_partition_current_offset{topic="orders"}')
    consumed = engineer.total('traces_span_metrics_calls_total{span_name="receive orders",service_name="accounting"}')
    must_agree(rows, published, "rows and messages of Kafka", absolute=8)
    must_agree(rows, consumed, "rows and consumed messages", absolute=8)


# Blueprint Hotel Reservation


def blueprint_has_its_reservation(engineer: Engineer) -> None:
    """Is a reservation in MongoDB?"""
    name = f"engineer_{engineer.marker()}"
    query = {"inDate": "2044-05-01", "outDate": "2044-05-02", "hotelId": 3, "roomNumber": 1}
    login = {"customerName": name, "username": "Cornell_1", "password": "1111111111"}
    status, text = engineer.send("GET", "/ReservationHandler", query=query | login)
    must(status == 200 and "Reservation successful" in text, text)
    script = f'db.reservation.find({{customername: "{name}"}}, {{_id: 0}}).toArray()'
    booked = engineer.mongo("reserv-db", "reservation-db", script, "mongosh")
    must([one["indate"] for one in booked] == ["2044-05-01"], f"{booked}")


def blueprint_counters_agree(engineer: Engineer) -> None:
    """Do the counters of the stores follow the traffic?"""
    reserved = engineer.calls('span_name="ReservationService_MakeReservation"')
    inserted = engineer.rate('mongodb_ss_opcounters{pod=~"reserv-db.*",legacy_op_type="insert"}')
    must_agree(inserted, reserved, "inserts and reservations")
    hotels = engineer.mongo("profile-db", "profile-db", "db.hotels.countDocuments({})", "mongosh")
    must(hotels == 80, f"{hotels} hotels")


# Train Ticket


def _mysql(engineer: Engineer, statement: str) -> list[list[str]]:
    subsets = engineer.api.get("endpoints", "tsdb-mysql-leader", engineer.namespace)["subsets"]
    leader = subsets[0]["addresses"][0]["targetRef"]["name"]
    text = engineer.run(leader, "mysql", "-N", "-uroot", "-e", statement, container="mysql")
    return [line.split("\t") for line in text.splitlines()]


def contact_is_in_its_table(engineer: Engineer) -> None:
    """Is a contact in MySQL?"""
    marker = engineer.marker()
    contact = {"accountId": f"{marker}", "name": "Ada", "documentType": 1, "documentNumber": f"D{marker}"}
    status, text = engineer.send("POST", "/api/v1/contactservice/contacts", body={**contact, "phoneNumber": "1"})
    must(status == 200 and json.loads(text)["status"] == 1, text)
    number = json.loads(text)["data"]["id"]
    found = _mysql(engineer, f"SELECT name, document_number FROM ts.contacts WHERE id = '{number}'")
    must(found == [["Ada", f"D{marker}"]], f"{found}")
    engineer.send("DELETE", f"/api/v1/contactservice/contacts/{number}")
    must(not _mysql(engineer, f"SELECT id FROM ts.contacts WHERE id = '{number}'"), "the contact is still there")


def statements_agree(engineer: Engineer) -> None:
    """Do the counters of MySQL follow the traffic?"""
    before = {name: int(value) for name, value in _mysql(engineer, "SHOW GLOBAL STATUS LIKE 'Com_%'")}
    labels = 'span_name="POST /api/v1/contactservice/contacts",service_name="ts-contacts-service"'
    created = f"traces_span_metrics_calls_total{{{labels}}}"
    contacts = engineer.total(created)
    engineer.cluster.wait(120)
    after = {name: int(value) for name, value in _mysql(engineer, "SHOW GLOBAL STATUS LIKE 'Com_%'")}
    new_contacts = engineer.total(created) - contacts
    inserted = after["Com_insert"] - before["Com_insert"]
    must_agree(inserted, new_contacts, "inserts and new contacts", share=0.2, absolute=8)
    deleted = after["Com_delete"] - before["Com_delete"]
    must_agree(inserted, deleted, "inserts and deletions", share=0.2, absolute=8)


# FleetCast


def contacts_are_in_tidb(engineer: Engineer) -> None:
    """Are the rows that the dashboard counts in TiDB?"""
    page = json.loads(engineer.send("GET", "/api/dashboard")[1])
    engineer.send("GET", "/api/simulate")
    after = json.loads(engineer.send("GET", "/api/dashboard")[1])
    must(after["observations"] > page["observations"] or after["contacts"] != page["contacts"], f"{after}")


QUESTIONS: dict[str, tuple[Question, ...]] = {
    "hotel_reservation": (hotel_has_its_reservation, hotel_counters_agree),
    "social_network": (post_is_in_the_stores, post_counters_agree),
    "online_boutique": (boutique_has_its_cart, boutique_counters_agree),
    "blueprint_hotel_reservation": (blueprint_has_its_reservation, blueprint_counters_agree),
    "astronomy_shop": (order_is_in_the_books, orders_agree),
    "train_ticket": (contact_is_in_its_table, statements_agree),
    "fleetcast": (contacts_are_in_tidb,),
}
