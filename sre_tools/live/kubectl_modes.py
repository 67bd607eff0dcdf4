"""Which kubectl commands a mode allows, and how a command that changes something is tried and remembered first.

| mode | what runs |
| read-only | what only reads; nothing is executed in pods |
| safe | changes too: tried by the server first (`--dry-run=server`), the objects saved, so that they can be put back |
| full | whatever may run on this machine at all |

In every mode there is no terminal, no file of this machine and no other identity (`kubectl_words`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sre_tools.errors import ToolError
from srearena.conductor.actions import kubectl_words

MODES = ("read-only", "safe", "full")
READING = frozenset(
    "api-resources api-versions auth cluster-info describe diff events explain get logs top version wait".split()
)
_READING_PARTS = {"rollout": {"status", "history"}, "auth": {"can-i", "whoami"}, "certificate": set[str]()}
_WRITING_PARTS = {"auth": {"reconcile"}, "cluster-info": {"dump"}}
_SHOWN_BY_DRY_RUN = frozenset("annotate apply autoscale create expose label patch replace run scale set taint".split())
"""Verbs whose dry run prints the objects they would touch."""
_SHOWN_BY_GET = frozenset("cordon delete drain rollout uncordon".split())
"""Verbs whose objects `kubectl get` with the same words shows."""
_NODES = frozenset("cordon drain uncordon".split())
_VALUES = frozenset(
    """-n --namespace -l --selector --field-selector -f --filename --as --as-group --as-uid --request-timeout -v --v
    --log-flush-frequency --vmodule""".split()
)
"""Flags with a value that mean the same to `kubectl get`, and those that may stand before a verb."""
_KEPT_SWITCHES = frozenset("-A --all-namespaces -R --recursive".split())
_DROPPED_VALUES = frozenset(
    """--cascade --grace-period --timeout --to-revision --field-manager --pod-selector --chunk-size
    --skip-wait-for-delete-timeout -o --output --dry-run --template --revision""".split()
)
_ALWAYS_ATTACHED = frozenset("--cascade --dry-run".split())
"""Flags whose value follows `=` only: the next word is not theirs."""


@dataclass(frozen=True, slots=True)
class Line:
    """A kubectl command line, taken apart far enough to know what it does."""

    words: tuple[str, ...]
    verb: str
    part: str
    """The word after verbs that have parts: `rollout restart`."""
    dry: bool

    @property
    def reads(self) -> bool:
        if self.dry and self.verb in _SHOWN_BY_DRY_RUN | {"delete"}:
            return True
        if self.verb in _READING_PARTS:
            return self.part in _READING_PARTS[self.verb]
        if self.part and self.part in _WRITING_PARTS.get(self.verb, ()):
            return False
        return self.verb in READING


def parse(words: Sequence[str]) -> Line:
    """The line, if it may run on this machine at all; BadAction says why not."""
    checked = kubectl_words.check(words)
    own = checked[: checked.index("--")] if "--" in checked else checked
    plain = _plain_words(own)
    dry = any(word.startswith("--dry-run=") and word != "--dry-run=none" for word in own) or "--dry-run" in own
    return Line(tuple(checked), plain[0], plain[1] if len(plain) > 1 else "", dry)


def _plain_words(words: Sequence[str]) -> list[str]:
    """The words that are no flags and no values of flags known to have some."""
    plain: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-") and word != "-":
            skip = word in _VALUES | (_DROPPED_VALUES - _ALWAYS_ATTACHED)
        else:
            plain.append(word)
    return plain


def allow(line: Line, mode: str) -> None:
    """ToolError where the mode does not allow the line."""
    if mode == "read-only" and not line.reads:
        raise ToolError(
            f"`kubectl {line.verb} {line.part}`".rstrip() + " changes something, and this server only reads"
        )


def preview(line: Line) -> list[str] | None:
    """A command that shows, as JSON, the objects that a line would touch, and changes nothing; None where none can."""
    if line.verb in _SHOWN_BY_DRY_RUN:
        own, remote = _split(line.words)
        return [*_without(own, "-o", "--output", "--dry-run", "--template"), "--dry-run=server", "-o", "json", *remote]
    if line.verb in _SHOWN_BY_GET:
        return _as_get(line)
    return None


def trial(line: Line) -> list[str] | None:
    """The line as the server would take it, without effect; None for verbs that cannot be tried."""
    if line.verb in _SHOWN_BY_DRY_RUN | _NODES | {"delete"} or (line.verb, line.part) == ("rollout", "undo"):
        own, remote = _split(line.words)
        return [*_without(own, "--dry-run"), "--dry-run=server", *remote]
    return None


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    at = list(words).index("--") if "--" in words else len(words)
    return list(words[:at]), list(words[at:])


def _without(words: Sequence[str], *flags: str) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        name = word.partition("=")[0]
        attached = any(len(flag) == 2 and word.startswith(flag) and not word.startswith("--") for flag in flags)
        if skip:
            skip = False
        elif name in flags:
            skip = word == name and name not in _ALWAYS_ATTACHED
        elif not attached:
            kept.append(word)
    return kept


def _as_get(line: Line) -> list[str]:
    own, _ = _split(line.words)
    kept: list[str] = []
    take = drop = False
    for word in own:
        name, equals, _ = word.partition("=")
        if take or drop:
            kept += [word] if take else []
            take = drop = False
        elif not word.startswith("-") or word == "-":
            kept.append(word)
        elif name in _VALUES or (not word.startswith("--") and word[:2] in _VALUES and len(word) > 2):
            kept.append(word)
            take = name in _VALUES and not equals
        elif name in _KEPT_SWITCHES:
            kept.append(word)
        else:
            drop = name in _DROPPED_VALUES - _ALWAYS_ATTACHED and not equals
    kept.remove(line.verb)
    if line.verb == "rollout":
        kept.remove(line.part)
    nodes = ["nodes"] if line.verb in _NODES else []
    return ["get", *nodes, *kept, "-o", "json"]
