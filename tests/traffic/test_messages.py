"""Messages through a broker: what is published is consumed, and a slow consumer falls behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from srearena.cluster.embedded.programs.datastores.datastore import Broker
from tests.traffic.small_applications import Lab, load, server


def pipeline(folder: Path, *, latency: str) -> Lab:
    kafka = {"address": "kafka:9092", "protocol": "kafka"}
    producer = server("producer", dependencies={"kafka": kafka})
    producer["operations"]["work"]["does"] = [{"publish": "kafka orders", "payload": 500}]
    consumer: dict[str, Any] = {
        "name": "consumer",
        "runtime": "java",
        "dependencies": {"kafka": kafka},
        "operations": {"handle": {"span": "receive orders", "span_kind": "consumer", "cpu": "1ms", "latency": latency}},
        "consumes": [{"from": "kafka", "topic": "orders", "group": "books", "operation": "handle"}],
    }
    lab = Lab(folder, [producer, consumer, load("producer", 10)])
    environment = {
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092",
        "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka:9093",
    }
    lab.run(
        "kafka",
        port=9092,
        image="apache/kafka:3.9.1",
        env=[{"name": name, "value": value} for name, value in environment.items()],
    )
    lab.run("producer", port=8080)
    lab.run("consumer")
    lab.run("load")
    lab.wait(120)
    return lab


def published(lab: Lab) -> int:
    """Messages that the topic has received: those the consumers have committed, and those they lag behind."""
    kafka = broker(lab)
    return kafka.committed("books", "orders") + kafka.lag("books", "orders")


def broker(lab: Lab) -> Broker:
    return next(
        store.model
        for store in lab.traffic.stores.values()
        if isinstance(store.model, Broker) and "orders" in store.model.topics
    )


def test_what_is_published_is_consumed(tmp_path: Path) -> None:
    lab = pipeline(tmp_path, latency="5ms")
    before = published(lab)
    lab.wait(100)
    kafka = broker(lab)
    assert published(lab) - before == pytest.approx(1000, rel=0.1)
    assert kafka.lag("books", "orders") < 30


def test_a_slow_consumer_falls_behind_and_catches_up_when_the_load_goes(tmp_path: Path) -> None:
    lab = pipeline(tmp_path, latency="500ms")
    behind = broker(lab).lag("books", "orders")
    lab.wait(100)
    assert broker(lab).lag("books", "orders") > behind + 600, "ten come in a second and two go out"
    next(iter(lab.traffic.drivers.values())).rate = 0.0
    left = broker(lab).lag("books", "orders")
    lab.wait(100)
    assert broker(lab).lag("books", "orders") == pytest.approx(left - 200, abs=30)


def test_a_lost_broker_fails_the_publisher_and_stops_the_consumer(tmp_path: Path) -> None:
    lab = pipeline(tmp_path, latency="5ms")
    lab.delete("services", "kafka")
    lab.wait(20)
    assert lab.failing("producer", "work") == pytest.approx(1.0)
    assert lab.rate("consumer", "handle") == 0.0
