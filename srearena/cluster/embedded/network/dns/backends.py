"""Plugins that serve records themselves: kubernetes, hosts, file and whoami."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from srearena.cluster.embedded.machine.networking.reachability import DnsRecord
from srearena.cluster.embedded.network.addresses import is_address, is_ipv6
from srearena.cluster.embedded.network.dns.caddyfile import CorefileError, Cursor
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
    NXDOMAIN,
    SERVFAIL,
    Question,
    Reply,
    address_kind,
    failure,
    is_within,
    qualified,
    reverse_name,
    zone_of,
)

_KUBERNETES_IGNORED = frozenset(
    {
        "endpoint",
        "tls",
        "kubeconfig",
        "resyncperiod",
        "namespaces",
        "namespace_labels",
        "labels",
        "noendpoints",
        "ignore",
        "transfer",
        "upstream",
        "multicluster",
        "startup_timeout",
        "apiserver_qps",
        "apiserver_burst",
        "apiserver_max_inflight",
    }
)
REVERSE_ZONES = ("in-addr.arpa.", "ip6.arpa.")


@dataclass
class Kubernetes(Handler):
    """Serves the records of the cluster's Services and pods."""

    zones: tuple[str, ...]
    pods: str = "disabled"
    ttl: int = 5
    pod_names: bool = False
    fallthrough: Fallthrough = NO_FALLTHROUGH
    namespaces: frozenset[str] = frozenset()

    @property
    def primary_zone(self) -> str:
        return next((zone for zone in self.zones if not _is_reverse(zone)), self.zones[0])

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        question = exchange.question
        zone = zone_of(question.name, self.zones)
        if zone is None:
            return next_handler(exchange)
        if not exchange.server.is_synced():
            return failure("plugin/kubernetes: not ready")
        records = self._records(exchange, question, zone)
        if records is None:
            if self.fallthrough.through(question.name):
                return next_handler(exchange)
            return Reply(NXDOMAIN, authoritative=True, negative_ttl=self.ttl)
        if records and records[0].kind == "CNAME" and question.kind not in ("CNAME", "SRV"):
            target = exchange.look_up(records[0].value, question.kind)
            if zone_of(records[0].value, self.zones) is not None and not target.records:
                # An alias within the cluster is left out where its target has no record of the kind.
                return Reply(NOERROR, (), authoritative=True, negative_ttl=self.ttl)
            records += target.records if target.rcode == NOERROR else ()
            return Reply(NOERROR, records, True, target.seconds, self.ttl, target.expires)
        return Reply(NOERROR, records, authoritative=True, negative_ttl=self.ttl)

    def _records(self, exchange: Exchange, question: Question, zone: str) -> tuple[DnsRecord, ...] | None:
        cluster = exchange.server.records
        if _is_reverse(zone):
            if question.kind != "PTR":
                return () if cluster.reverse(question.name, self.primary_zone, self.ttl) else None
            return cluster.reverse(question.name, self.primary_zone, self.ttl, self.pod_names)
        if question.name == zone:
            if question.kind == "SOA":
                text = f"ns.dns.{zone} hostmaster.{zone} 1 7200 1800 86400 {self.ttl}"
                return (DnsRecord(zone, "SOA", text, self.ttl),)
            if question.kind == "NS":
                return (DnsRecord(zone, "NS", f"ns.dns.{zone}", self.ttl),)
        return cluster.lookup(
            question.name, zone, question.kind, pods=self.pods, ttl=self.ttl, pod_names=self.pod_names
        )


def _is_reverse(zone: str) -> bool:
    return any(is_within(zone, reverse) for reverse in REVERSE_ZONES)


def kubernetes(cursor: Cursor, context: SetupContext) -> Handler:
    found: Kubernetes | None = None
    while cursor.next():
        if found is not None:
            raise CorefileError("this plugin can only be used once per Server Block")
        found = Kubernetes(zones_of(cursor.remaining(), context))
        while cursor.next_block():
            option = cursor.value
            arguments = cursor.remaining()
            if option == "pods":
                if len(arguments) != 1:
                    raise cursor.argument_error()
                if arguments[0] not in ("disabled", "insecure", "verified"):
                    allowed = "pods must be one of: disabled, verified, insecure"
                    raise CorefileError(f"wrong value for pods: {arguments[0]},  {allowed}")
                found.pods = arguments[0]
            elif option == "ttl":
                found.ttl = _ttl(cursor, arguments, 0, 3600)
            elif option == "fallthrough":
                found.fallthrough = Fallthrough.of(arguments)
            elif option == "endpoint_pod_names":
                if arguments:
                    raise cursor.argument_error()
                found.pod_names = True
            elif option not in _KUBERNETES_IGNORED:
                raise cursor.error(f"unknown property '{option}'")
            elif not arguments and option != "noendpoints":
                raise cursor.argument_error()
    assert found is not None
    return found


def _ttl(cursor: Cursor, arguments: list[str], least: int, most: int) -> int:
    if not arguments:
        raise cursor.argument_error()
    if not re.fullmatch(r"[+-]?\d{1,18}", arguments[0]):
        raise CorefileError(f'strconv.Atoi: parsing "{arguments[0]}": invalid syntax')
    value = int(arguments[0])
    if not least <= value <= most:
        raise cursor.error(f"ttl must be in range [{least}, {most}]: {value}")
    return value


@dataclass
class Hosts(Handler):
    """Serves the lines of a hosts file."""

    zones: tuple[str, ...]
    addresses: dict[str, list[str]] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    ttl: int = 3600
    reverse: bool = True
    fallthrough: Fallthrough = NO_FALLTHROUGH

    def add(self, line: str) -> None:
        words = line.partition("#")[0].split()
        if len(words) < 2 or not is_address(words[0]):
            return
        for word in words[1:]:
            name = qualified(word)
            if zone_of(name, self.zones) is None:
                continue
            self.addresses.setdefault(name, []).append(words[0])
            self.names.setdefault(reverse_name(words[0]), []).append(name)

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        question = exchange.question
        if question.kind == "PTR":
            found = self.names.get(question.name, []) if self.reverse else []
            if not found:
                return next_handler(exchange)
            records = [DnsRecord(question.name, "PTR", name, self.ttl) for name in found]
            return Reply(NOERROR, tuple(records), authoritative=True)
        if zone_of(question.name, self.zones) is None:
            return next_handler(exchange)
        addresses = self.addresses.get(question.name, [])
        matching = [address for address in addresses if address_kind(address) == question.kind]
        if not matching and not addresses:
            if self.fallthrough.through(question.name):
                return next_handler(exchange)
            # A hosts file has no zone with which to deny a name.
            return failure()
        records = [DnsRecord(question.name, question.kind, address, self.ttl) for address in matching]
        return Reply(NOERROR, tuple(records), authoritative=True)


def hosts(cursor: Cursor, context: SetupContext) -> Handler:
    found: Hosts | None = None
    while cursor.next():
        if found is not None:
            raise CorefileError("this plugin can only be used once per Server Block")
        arguments = cursor.remaining()
        path = arguments[0] if arguments else "/etc/hosts"
        found = Hosts(zones_of(arguments[1:], context))
        for line in (context.read(path) or "").splitlines():
            found.add(line)
        while cursor.next_block():
            option = cursor.value
            values = cursor.remaining()
            if option == "fallthrough":
                found.fallthrough = Fallthrough.of(values)
            elif option == "ttl":
                if len(values) != 1:
                    raise cursor.argument_error()
                if not values[0].isdigit() or not 0 < int(values[0][:9]) < 2**31:
                    raise cursor.error("ttl provided is invalid")
                found.ttl = int(values[0])
            elif option == "no_reverse":
                found.reverse = False
            elif option == "reload":
                if len(values) != 1:
                    raise cursor.argument_error()
            elif values:
                found.add(" ".join([option, *values]))
            else:
                raise cursor.error(f"unknown property '{option}'")
    assert found is not None
    return found


@dataclass
class ZoneFile(Handler):
    """Serves a zone file: plain records and wildcards, no delegation."""

    zones: tuple[str, ...]
    records: dict[str, list[DnsRecord]]
    fallthrough: Fallthrough = NO_FALLTHROUGH

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        question = exchange.question
        if zone_of(question.name, self.zones) is None:
            return next_handler(exchange)
        records = self.records.get(question.name)
        if records is None:
            star = "*." + question.name.partition(".")[2]
            records = [replace(record, name=question.name) for record in self.records.get(star, ())] or None
        if records is None:
            if self.fallthrough.through(question.name):
                return next_handler(exchange)
            return Reply(NXDOMAIN, authoritative=True, negative_ttl=300)
        alias = next((record for record in records if record.kind == "CNAME"), None)
        if alias is not None and question.kind != "CNAME":
            target = exchange.look_up(alias.value, question.kind)
            return Reply(NOERROR, (alias, *target.records), True, target.seconds, 300, target.expires)
        found = tuple(record for record in records if question.kind in (record.kind, "ANY"))
        return Reply(NOERROR, found, authoritative=True, negative_ttl=300)


def zone_file(cursor: Cursor, context: SetupContext) -> Handler:
    found: ZoneFile | None = None
    while cursor.next():
        arguments = cursor.remaining()
        if not arguments:
            raise cursor.argument_error()
        text = context.read(arguments[0])
        if text is None:
            raise CorefileError(f"open {arguments[0]}: no such file or directory")
        found = found or ZoneFile((), {})
        zones = zones_of(arguments[1:], context)
        found.zones += zones
        for zone in zones:
            read_zone(text, zone, found.records)
        while cursor.next_block():
            option = cursor.value
            values = cursor.remaining()
            if option == "fallthrough":
                found.fallthrough = Fallthrough.of(values)
            elif option not in ("reload", "upstream", "transfer"):
                raise cursor.error(f"unknown property '{option}'")
    assert found is not None
    return found


def read_zone(text: str, origin: str, into: dict[str, list[DnsRecord]]) -> None:
    """Read the records of a zone file; invalid lines are ignored."""
    ttl = 3600
    owner = origin

    def full(name: str) -> str:
        if name == "@":
            return origin
        return qualified(name) if name.endswith(".") else qualified(f"{name}.{origin.rstrip('.')}")

    for raw in re.sub(r"\(([^)]*)\)", lambda m: m[1].replace("\n", " "), re.sub(r";[^\n]*", "", text)).splitlines():
        words = raw.split()
        if not words:
            continue
        if words[0] == "$ORIGIN" and len(words) > 1:
            origin = qualified(words[1])
            continue
        if words[0] == "$TTL" and len(words) > 1 and words[1].isdigit():
            ttl = int(words[1])
            continue
        if not raw[0].isspace():
            owner = full(words.pop(0))
        record_ttl = ttl
        while words and (words[0].isdigit() or words[0].upper() == "IN"):
            word = words.pop(0)
            record_ttl = int(word) if word.isdigit() else record_ttl
        if len(words) < 2:
            continue
        kind, data = words[0].upper(), words[1:]
        if kind in ("CNAME", "NS", "PTR"):
            data = [full(data[0])]
        into.setdefault(owner, []).append(DnsRecord(owner, kind, " ".join(data), record_ttl))


class WhoAmI(Handler):
    """Replies with the address of the client."""

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        kind = "AAAA" if is_ipv6(exchange.client) else "A"
        return Reply(NOERROR, (DnsRecord(exchange.question.name, kind, exchange.client, 0),), authoritative=True)


def whoami(cursor: Cursor, context: SetupContext) -> Handler:
    cursor.next()
    if cursor.next_arg():
        raise cursor.argument_error()
    return WhoAmI()


class NoNextPlugin(Handler):
    """The end of the chain: no plugin replied."""

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        return Reply(SERVFAIL, error="plugin/: no next plugin found")
