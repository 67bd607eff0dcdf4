"""The cache plugin: replies are repeated until their TTL ends, even where they are outdated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from srearena.cluster.embedded.network.dns.caddyfile import CorefileError, Cursor
from srearena.cluster.embedded.network.dns.chain import Exchange, Handler, NextHandler, SetupContext, zones_of
from srearena.cluster.embedded.network.dns.messages import (
    NOERROR,
    NXDOMAIN,
    SERVFAIL,
    Question,
    Reply,
    is_within,
    zone_of,
)
from srearena.cluster.embedded.network.dns.options import duration

MAX_SUCCESS, MAX_DENIAL, LEAST, MAX_FAILURE = 3600, 1800, 5, 5
CAPACITY = 9984


@dataclass(frozen=True, slots=True)
class _Entry:
    reply: Reply
    since: float
    until: float


@dataclass
class Cache(Handler):
    zones: tuple[str, ...]
    success_ttl: int = MAX_SUCCESS
    denial_ttl: int = MAX_DENIAL
    least_success: int = LEAST
    least_denial: int = LEAST
    failure_ttl: float = MAX_FAILURE
    no_success: tuple[str, ...] = ()
    no_denial: tuple[str, ...] = ()
    stale_for: float = 0.0
    keep_ttl: bool = False
    entries: dict[Question, _Entry] = field(default_factory=dict)

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        question = exchange.question
        if zone_of(question.name, self.zones) is None:
            return next_handler(exchange)
        now = exchange.server.clock.now
        entry = self.entries.get(question)
        if entry is not None and entry.until > now:
            return self._aged(entry, now)
        reply = next_handler(exchange)
        if entry is not None and reply.rcode == SERVFAIL and entry.until + self.stale_for > now:
            return replace(self._aged(entry, now), expires=now + 1)
        ttl = self._ttl(question, reply)
        if ttl <= 0:
            return reply
        if len(self.entries) >= CAPACITY:
            del self.entries[next(iter(self.entries))]
        until = now + reply.seconds + ttl
        self.entries[question] = _Entry(replace(reply, seconds=0.0, error=""), now, until)
        return replace(reply, expires=min(reply.expires, until))

    def _aged(self, entry: _Entry, now: float) -> Reply:
        age = 0 if self.keep_ttl else int(now - entry.since)
        records = tuple(replace(record, ttl=max(0, record.ttl - age)) for record in entry.reply.records)
        return replace(entry.reply, records=records, expires=entry.until)

    def _ttl(self, question: Question, reply: Reply) -> float:
        if reply.rcode == SERVFAIL:
            return self.failure_ttl
        if reply.rcode not in (NOERROR, NXDOMAIN):
            return 0
        if reply.is_negative:
            if any(is_within(question.name, zone) for zone in self.no_denial):
                return 0
            return max(min(reply.negative_ttl, self.denial_ttl), self.least_denial)
        if any(is_within(question.name, zone) for zone in self.no_success):
            return 0
        return max(min(min(record.ttl for record in reply.records), self.success_ttl), self.least_success)


def cache(cursor: Cursor, context: SetupContext) -> Handler:
    found: Cache | None = None
    while cursor.next():
        if found is not None:
            raise CorefileError("this plugin can only be used once per Server Block")
        arguments = cursor.remaining()
        found = Cache(())
        if arguments and arguments[0].lstrip("-").isdigit():
            ttl = int(arguments.pop(0)[:10])
            if ttl <= 0:
                raise CorefileError(f"cache TTL can not be zero or negative: {ttl}")
            found.success_ttl = found.denial_ttl = ttl
        found.zones = zones_of(arguments, context)
        while cursor.next_block():
            option = cursor.value
            _option(found, option, cursor.remaining(), cursor)
    assert found is not None
    return found


def _option(cache: Cache, option: str, values: list[str], cursor: Cursor) -> None:
    if option in ("success", "denial"):
        if not values:
            raise cursor.argument_error()
        numbers = [_integer(word) for word in values[:3]]
        ttl = numbers[1] if len(numbers) > 1 else (MAX_SUCCESS if option == "success" else MAX_DENIAL)
        if ttl <= 0:
            raise CorefileError(f"cache TTL can not be zero or negative: {ttl}")
        least = numbers[2] if len(numbers) > 2 else LEAST
        setattr(cache, f"{option}_ttl", ttl)
        setattr(cache, f"least_{option}", least)
    elif option == "disable":
        if not values or values[0] not in ("success", "denial"):
            raise cursor.error(f"cache type for disable must be {'success'!r} or {'denial'!r}".replace("'", '"'))
        zones = zones_of(values[1:], SetupContext(cache.zones, lambda path: None))
        if values[0] == "success":
            cache.no_success += zones
        else:
            cache.no_denial += zones
    elif option == "serve_stale":
        cache.stale_for = 3600.0
    elif option == "servfail":
        if len(values) != 1:
            raise cursor.argument_error()
        cache.failure_ttl = min(300.0, duration(values[0]))
    elif option == "keepttl":
        cache.keep_ttl = True
    elif option == "prefetch":
        if not values:
            raise cursor.argument_error()
    else:
        raise cursor.argument_error()


def _integer(word: str) -> int:
    if not word.lstrip("-").isdigit():
        raise CorefileError(f'strconv.Atoi: parsing "{word}": invalid syntax')
    return int(word[:10])
