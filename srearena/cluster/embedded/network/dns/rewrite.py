"""The rewrite plugin: changes names, types and TTLs of queries and, where configured, of replies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from srearena.cluster.embedded.machine.networking.reachability import DnsRecord
from srearena.cluster.embedded.network.dns.caddyfile import Cursor
from srearena.cluster.embedded.network.dns.chain import Exchange, Handler, NextHandler, SetupContext
from srearena.cluster.embedded.network.dns.messages import RCODES, Question, Reply, is_name, qualified
from srearena.regular_expressions import Match, Pattern, PatternError, pattern

_MATCHES = ("exact", "prefix", "suffix", "substring", "regex")
_NAMES = frozenset({"CNAME", "PTR", "NS", "SRV", "MX"})
_FIELDS = ("class", "type", "name", "edns0", "ttl", "cname", "rcode")

Renaming = Callable[[str], "str | None"]
"""The new name; None where the rule does not match."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rewrite rule; only the fields it changes are set."""

    last: bool
    rename: Renaming | None = None
    answers: tuple[Renaming, ...] = ()
    values: tuple[Renaming, ...] = ()
    undo: bool = False
    """Whether names in the reply are changed back to the original ones."""
    undo_values: bool = False
    kind: tuple[str, str] | None = None
    ttl: tuple[Renaming, int] | None = None
    rcode: tuple[Renaming, str, str] | None = None


@dataclass
class Rewrite(Handler):
    rules: list[Rule] = field(default_factory=list)

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        question = exchange.question
        back: list[Callable[[Reply], Reply]] = []
        for rule in self.rules:
            changed = self._applied(rule, question, back)
            if changed is None:
                continue
            question = changed
            if rule.last:
                break
        if not back and question == exchange.question:
            return next_handler(exchange)
        reply = next_handler(exchange.with_question(question))
        for undo in reversed(back):
            reply = undo(reply)
        return reply

    @staticmethod
    def _applied(rule: Rule, question: Question, back: list[Callable[[Reply], Reply]]) -> Question | None:
        """The question after one rule; appends changes of the reply to `back`. None where the rule does not match."""
        if rule.kind is not None:
            return Question(question.name, rule.kind[1]) if rule.kind[0] == question.kind else None
        if rule.ttl is not None:
            fits, ttl = rule.ttl
            if fits(question.name) is None:
                return None
            back.append(lambda reply: _with_records(reply, lambda record: replace(record, ttl=ttl)))
            return question
        if rule.rcode is not None:
            fits, before, after = rule.rcode
            if fits(question.name) is None:
                return None
            back.append(lambda reply: replace(reply, rcode=after) if reply.rcode == before else reply)
            return question
        name = rule.rename(question.name) if rule.rename is not None else None
        if name is None or not is_name(name):
            return None
        original = question.name
        if rule.undo:
            back.append(lambda reply: _renamed(reply, (_exactly(name, original),), rule.undo_values))
        if rule.answers:
            back.append(lambda reply: _renamed(reply, rule.answers, False))
        if rule.values:
            back.append(lambda reply: _revalued(reply, rule.values))
        return Question(name, question.kind)


def _with_records(reply: Reply, change: Callable[[DnsRecord], DnsRecord]) -> Reply:
    return replace(reply, records=tuple(change(record) for record in reply.records))


def _first(renamings: tuple[Renaming, ...], name: str) -> str:
    return next((new for new in (rename(name) for rename in renamings) if new is not None), name)


def _renamed(reply: Reply, renamings: tuple[Renaming, ...], values: bool) -> Reply:
    reply = _with_records(reply, lambda record: replace(record, name=_first(renamings, record.name)))
    return _revalued(reply, renamings) if values else reply


def _revalued(reply: Reply, renamings: tuple[Renaming, ...]) -> Reply:
    def change(record: DnsRecord) -> DnsRecord:
        if record.kind not in _NAMES:
            return record
        before, space, target = record.value.rpartition(" ")
        return replace(record, value=f"{before}{space}{_first(renamings, target)}")

    return _with_records(reply, change)


def _exactly(name: str, new: str) -> Renaming:
    return lambda other: new if other == name else None


def _substituted(expression: Pattern, replacement: str) -> Renaming:
    """A regex rule: {1} in the replacement is a group; the replacement is the whole new name."""

    def rename(name: str) -> str | None:
        found = expression.search(name)
        return qualified(_filled(replacement, found)) if found is not None else None

    return rename


def _filled(replacement: str, found: Match) -> str:
    for number, text in enumerate(found.groups):
        replacement = replacement.replace(f"{{{number}}}", text)
    return replacement


def _renaming(match: str, source: str, target: str, cursor: Cursor) -> Renaming:
    if match == "exact":
        return _exactly(qualified(source), qualified(target))
    if match == "prefix":
        old = source.lower()
        return lambda name: qualified(target.lower() + name[len(old) :]) if name.startswith(old) else None
    if match == "suffix":
        old, new = qualified(source), qualified(target)
        return lambda name: name[: -len(old)] + new if name.endswith(old) else None
    if match == "substring":
        old = source.lower()
        return lambda name: qualified(name.replace(old, target.lower())) if old and old in name else None
    return _substituted(_compiled(source, cursor), target.lower())


def _compiled(text: str, cursor: Cursor) -> Pattern:
    try:
        return pattern(text)
    except PatternError as error:
        raise cursor.error(f"invalid regex pattern in a name rule: {text}, error: {error}") from None


def rewrite(cursor: Cursor, context: SetupContext) -> Handler:
    found = Rewrite()
    while cursor.next():
        arguments = cursor.remaining()
        if cursor.next_block():
            while True:
                words = [cursor.value, *cursor.remaining()]
                # A block has one rule per line, or holds the parts of a single rule.
                if arguments:
                    arguments += words
                else:
                    found.rules.append(_rule(words, cursor))
                if not cursor.next_block():
                    break
            if not arguments:
                continue
        found.rules.append(_rule(arguments, cursor))
    return found


def _rule(words: list[str], cursor: Cursor) -> Rule:
    if not words:
        raise cursor.error("no rule type specified for rewrite")
    words = list(words)
    last = True
    if words[0].lower() in ("continue", "stop"):
        last = words.pop(0).lower() == "stop"
    if len(words) < 2:
        raise cursor.error("rewrite: rule must have at least 2 arguments")
    what, arguments = words[0].lower(), words[1:]
    if what not in _FIELDS:
        raise cursor.error(f'invalid rule type "{what}"')
    if what == "name":
        return _name_rule(last, arguments, cursor)
    if what == "type" and len(arguments) == 2:
        return Rule(last, kind=(arguments[0].upper(), arguments[1].upper()))
    if what == "ttl" and len(arguments) >= 2:
        match = arguments.pop(0) if arguments[0] in _MATCHES else "exact"
        if len(arguments) < 2:
            raise cursor.error("too few arguments for a TTL rule")
        number = arguments[1].partition("-")[0]
        if not number.isdigit():
            raise cursor.error(f"invalid TTL '{arguments[1]}' for a TTL rule")
        return Rule(last, ttl=(_renaming(match, arguments[0], arguments[0], cursor), int(number[:9])))
    if what == "rcode" and len(arguments) >= 3:
        match = arguments.pop(0) if arguments[0] in _MATCHES and len(arguments) > 3 else "exact"
        before, after = arguments[1].upper(), arguments[2].upper()
        if before not in RCODES or after not in RCODES:
            raise cursor.error(f"invalid RCODE in {' '.join(arguments)}")
        return Rule(last, rcode=(_renaming(match, arguments[0], arguments[0], cursor), before, after))
    if what in ("class", "edns0", "cname"):
        return Rule(last)
    raise cursor.error(f"wrong number of arguments for a {what} rule")


def _name_rule(last: bool, words: list[str], cursor: Cursor) -> Rule:
    match = words.pop(0).lower() if len(words) > 2 and words[0].lower() in _MATCHES else "exact"
    if len(words) < 2:
        raise cursor.error("too few arguments for a name rule")
    source, target, arguments = words[0], words[1], words[2:]
    rename = _renaming(match, source, target, cursor)
    undo, undo_values = match in ("exact", "suffix"), False
    answers: list[Renaming] = []
    values: list[Renaming] = []
    while arguments:
        if arguments.pop(0).lower() != "answer" or not arguments:
            raise cursor.error("exceeded the number of arguments for a non-regex rule argument")
        kind = arguments.pop(0).lower()
        if kind == "auto":
            undo = undo_values = True
            continue
        if kind in ("name", "value"):
            if not arguments:
                raise cursor.error("invalid arguments for response rule")
            first = arguments.pop(0)
        else:
            first, kind = kind, "name"
        if not arguments:
            raise cursor.error("invalid arguments for response rule")
        into = answers if kind == "name" else values
        into.append(_substituted(_compiled(first, cursor), arguments.pop(0).lower()))
    if answers:
        undo = False
    return Rule(last, rename, tuple(answers), tuple(values), undo, undo_values)
