"""Filters on the text of a line. They read bytes, so that dropped lines are never decoded."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address, ip_network

from srearena.cluster.embedded.telemetry.logs.logql.captures import captures, holds
from srearena.cluster.embedded.telemetry.logs.logql.errors import QueryError, StageProblem
from srearena.cluster.embedded.telemetry.logs.logql.syntax import LineFilter
from srearena.regular_expressions import PatternError, pattern

Test = Callable[[bytes], bool]
Address = IPv4Address | IPv6Address

_ADDRESS = re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7})(?![\w:])")


def test(stage: LineFilter) -> Test:
    found = [_one(stage.operator, kind, text) for kind, text in stage.patterns]
    if stage.operator.startswith("!"):
        if len(found) == 1:
            single = found[0]
            return lambda line: not single(line)
        return lambda line: not any(one(line) for one in found)
    return found[0] if len(found) == 1 else lambda line: any(one(line) for one in found)


def _one(operator: str, kind: str, text: str) -> Test:
    if kind == "ip":
        if operator not in ("|=", "!="):
            raise QueryError("ip: invalid operation")
        inside = address_test(text)
        return lambda line: any(map(inside, addresses_in(line.decode("utf-8", "replace"))))
    if operator in ("|=", "!="):
        literal = text.encode()
        return lambda line: literal in line
    if operator in ("|~", "!~"):
        try:
            search = pattern(text).presence.search
        except PatternError as problem:
            raise StageProblem(problem) from problem
        return lambda line: search(line) is not None
    parts = captures(text, is_filter=True)
    return lambda line: holds(parts, line.decode("utf-8", "replace"))


def address_test(text: str) -> Callable[[Address], bool]:
    """Whether an address is one, in a network, or between two."""
    low, dash, high = text.partition("-")
    try:
        if dash:
            first, last = ip_address(low.strip()), ip_address(high.strip())
            return lambda address: address.version == first.version and int(first) <= int(address) <= int(last)
        network = ip_network(text, strict=False)
    except ValueError as problem:
        raise QueryError(f"ip: invalid pattern: {text}") from problem
    return lambda address: address in network


def addresses_in(text: str) -> list[Address]:
    found: list[Address] = []
    for candidate in _ADDRESS.findall(text):
        try:
            found.append(ip_address(candidate))
        except (AddressValueError, ValueError):
            continue
    return found
