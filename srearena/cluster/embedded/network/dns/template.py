"""The template plugin: replies generated from the question."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from srearena.cluster.embedded.machine.networking.reachability import DnsRecord
from srearena.cluster.embedded.network.addresses import is_address
from srearena.cluster.embedded.network.dns.caddyfile import Cursor
from srearena.cluster.embedded.network.dns.chain import (
    NO_FALLTHROUGH,
    Exchange,
    Fallthrough,
    Handler,
    NextHandler,
    SetupContext,
    zones_of,
)
from srearena.cluster.embedded.network.dns.messages import (
    NOERROR,
    RCODES,
    Reply,
    address_kind,
    failure,
    qualified,
    zone_of,
)
from srearena.regular_expressions import Pattern, PatternError
from srearena.regular_expressions import pattern as compiled

_TEMPLATE_PART = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}")
_TEMPLATE_INDEX = re.compile(r"index\s+\.Match\s+(\d{1,3})")
_TEMPLATE_FIELD = re.compile(r"\.(Name|Class|Type|Zone|Question\.Name|Group\.(\w+)|Remote)")


@dataclass
class Template(Handler):
    """Generates replies from the question with a template."""

    kind: str
    zones: tuple[str, ...]
    patterns: list[Pattern] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    rcode: str = NOERROR
    fallthrough: Fallthrough = NO_FALLTHROUGH

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        question = exchange.question
        zone = zone_of(question.name, self.zones)
        if zone is None or self.kind not in ("ANY", question.kind):
            return next_handler(exchange)
        for pattern in self.patterns:
            found = pattern.search(question.name)
            if found is None:
                continue
            records: list[DnsRecord] = []
            for answer in self.answers:
                values = {"Class": "IN", "Type": question.kind, "Zone": zone, "Remote": exchange.client}
                values |= {"Name": question.name, "Question.Name": question.name}
                text = _filled_in(answer, values, found.groups, dict(found.names))
                record = resource_record(text)
                if record is None:
                    return failure(f"plugin/template: failed to parse {text!r}")
                records.append(record)
            return Reply(self.rcode, tuple(records), authoritative=True, negative_ttl=60)
        if self.fallthrough.through(question.name):
            return next_handler(exchange)
        return failure()


def _filled_in(template: str, values: dict[str, str], groups: tuple[str, ...], names: dict[str, str]) -> str:
    def part(match: re.Match[str]) -> str:
        index = _TEMPLATE_INDEX.fullmatch(match[1])
        if index is not None:
            number = int(index[1])
            return groups[number] if number < len(groups) else ""
        one = _TEMPLATE_FIELD.fullmatch(match[1])
        if one is None:
            return ""
        return names.get(one[2], "") if one[2] else values[one[1]]

    return _TEMPLATE_PART.sub(part, template)


def resource_record(text: str) -> DnsRecord | None:
    """A record as zone files write it on one line: name, TTL, class, type and data."""
    words = text.split()
    if not words:
        return None
    name, ttl = qualified(words.pop(0)), 3600
    while words and (words[0].isdigit() or words[0].upper() == "IN"):
        word = words.pop(0)
        ttl = int(word[:10]) if word.isdigit() else ttl
    if len(words) < 2:
        return None
    kind, value = words[0].upper(), " ".join(words[1:])
    if kind in ("A", "AAAA") and (not is_address(value) or address_kind(value) != kind):
        return None
    return DnsRecord(name, kind, qualified(value) if kind in ("CNAME", "PTR", "NS") else value, ttl)


@dataclass
class Templates(Handler):
    """The templates of one server block, tried in turn."""

    templates: list[Template] = field(default_factory=list)

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        def serve_from(number: int, exchange: Exchange) -> Reply:
            if number == len(self.templates):
                return next_handler(exchange)
            return self.templates[number].serve(exchange, lambda onward: serve_from(number + 1, onward))

        return serve_from(0, exchange)


def template(cursor: Cursor, context: SetupContext) -> Handler:
    found = Templates()
    while cursor.next():
        arguments = cursor.remaining()
        if not arguments:
            raise cursor.argument_error()
        if arguments[0].upper() not in ("IN", "ANY", "CH", "HS", "CS", "NONE"):
            raise cursor.error(f"invalid query class {arguments[0]}")
        if len(arguments) < 2:
            raise cursor.argument_error()
        one = Template(arguments[1].upper(), zones_of(arguments[2:], context))
        while cursor.next_block():
            option = cursor.value
            values = cursor.remaining()
            if option == "fallthrough":
                one.fallthrough = Fallthrough.of(values)
            elif option in ("upstream", "ederror", "additional", "authority"):
                continue
            elif option not in ("match", "answer", "rcode") or not values:
                raise cursor.argument_error()
            elif option == "match":
                try:
                    one.patterns += [compiled(text) for text in values]
                except PatternError as error:
                    raise cursor.error(f"could not compile regex {error}") from None
            elif option == "answer":
                one.answers += values
            else:
                if values[0].upper() not in RCODES:
                    raise cursor.error(f"unknown rcode {values[0]}")
                one.rcode = values[0].upper()
        if not one.patterns:
            one.patterns = [compiled(".*")]
        if not one.answers and one.rcode == NOERROR:
            raise cursor.error("no answer section for template found")
        found.templates.append(one)
    return found
