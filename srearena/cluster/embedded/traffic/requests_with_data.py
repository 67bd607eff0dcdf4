"""Single requests and messages that read and write an application's data, through handlers beside the application."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.network.network import Network
from srearena.cluster.embedded.traffic.data_handlers import (
    Exchange,
    Handler,
    Message,
    StoreFailed,
    Visit,
    consumer_for,
)
from srearena.cluster.embedded.traffic.load import Consumer
from srearena.cluster.embedded.traffic.servers import Instance

MESSAGE_SECONDS = 24 * 3600.0
"""How long messages of single requests wait for their consumers. Chosen: bounds memory where a consumer is gone."""


class RequestsWithData:
    """Runs handlers, and keeps the messages that no consumer has processed yet."""

    def __init__(self, network: Network, clock: Clock, random: Random, instances: Mapping[Process, Instance]) -> None:
        self._network = network
        self._clock = clock
        self._random = random
        self._instances = instances
        self._messages: list[Message] = []

    def handle(self, handler: Handler, request: HttpRequest, visits: list[Visit]) -> HttpResponse:
        """Let a single request read and write data; StoreFailed where a store does not allow it."""
        exchange = self._exchange(request, visits)
        response = handler(exchange)
        self._messages += exchange.published
        return response

    def sample(self, handler: Handler, request: HttpRequest, visits: list[Visit]) -> None:
        """Let a request of the load write its data: traffic counts its operations and sends its messages."""
        exchange = self._exchange(request, visits, is_sample=True)
        handler(exchange)
        self._messages += exchange.published

    def _exchange(self, request: HttpRequest, visits: list[Visit], *, is_sample: bool = False) -> Exchange:
        others = self._instances.values()
        return Exchange(request, visits, self._network, self._random, self._clock.now, others, is_sample=is_sample)

    def deliver(self, consumers: Iterable[Consumer]) -> None:
        """Let consumers process the messages of single requests that their group has reached."""
        if not self._messages:
            return
        for consumer in consumers:
            self._deliver_to(consumer)
        oldest = self._clock.now - MESSAGE_SECONDS
        self._messages = [one for one in self._messages if not one.taken_by and one.sent_at > oldest]

    def _deliver_to(self, consumer: Consumer) -> None:
        visit = Visit(consumer.instance, consumer.consumption.operation)
        handler = consumer_for(visit)
        if handler is None:
            return
        group = consumer.consumption.group or consumer.instance.name
        for message in self._messages:
            if message.broker is not consumer.broker or message.topic != consumer.consumption.topic:
                continue
            if group in message.taken_by or message.broker.committed(group, message.topic) < message.position:
                continue
            message.taken_by.add(group)
            try:
                handler(self._exchange(HttpRequest(), [visit], is_sample=message.is_sample), message.record)
            except StoreFailed as problem:
                log = consumer.node.operation.failure_log if consumer.node.operation is not None else ""
                consumer.instance.write_log(log, error=problem)
