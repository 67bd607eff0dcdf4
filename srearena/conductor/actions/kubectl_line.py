"""A kubectl command line, taken apart as kubectl takes it apart itself.

Whether a line may run, and what it would touch, must be judged on what kubectl will understand, not on what the line
looks like: `-n -- --kubeconfig=x` has a namespace called `--` and then a flag, and `auth --x whoami reconcile` is a
`reconcile`. So the rules are those of its libraries (cobra for verbs, pflag for flags), and which flags take no value
is a table that a test compares with the help of the kubectl that is installed.

What always holds: writing a line again (`rewritten`) gives a line with the same meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from srearena.conductor.errors import BadAction

SWITCHES = frozenset(
    """all all-containers all-namespaces all-pods allow-missing-template-keys append-hash arguments-only attach cached
    client command create-annotation delete-emptydir-data delete-local-data disable-compression disable-eviction edit
    expose follow force force-conflicts global-default help ignore-daemonsets ignore-errors ignore-not-found
    insecure-skip-tls-verify insecure-skip-tls-verify-backend interactive keep-annotations keep-init-containers
    keep-labels keep-liveness keep-readiness keep-startup leave-stdin-open list local match-server-version namespaced
    no-headers now openapi-patch output-watch-events overwrite previous privileged prune quiet record recursive
    remove-extra-permissions remove-extra-subjects replace resolve rm same-node save-config server-print server-side
    share-processes show-capacity show-events show-kind show-labels show-managed-fields show-swap stdin sum timestamps
    tty use-protocol-buffers wait warnings-as-errors watch watch-only windows-line-endings""".split()
)
"""Flags without a value, unless one is attached (`--watch=false`)."""
OPTIONAL = frozenset(("cascade", "dry-run", "validate"))
"""Flags whose value, if there is one, is attached."""
_SWITCHES_OF = {"top": frozenset(("containers",)), "logs": frozenset(("prefix",))}
_GLOBAL = frozenset("disable-compression insecure-skip-tls-verify match-server-version warnings-as-errors".split())
_BEFORE_PART = {
    "create": _GLOBAL.union(
        """allow-missing-template-keys dry-run edit recursive save-config show-managed-fields validate
        windows-line-endings""".split()
    ),
    "apply": _GLOBAL.union(
        """all allow-missing-template-keys cascade dry-run force force-conflicts openapi-patch overwrite prune recursive
        server-side show-managed-fields validate wait""".split()
    ),
}
"""What is known to take no value where a verb's part is still to come: the flags of the verb itself."""
_SHORT = {
    word[0]: word[2:]
    for word in """A=all-namespaces L=label-columns R=recursive c=container e=env f=filename h=help i=stdin k=kustomize
    l=selector n=namespace o=output p=patch q=quiet r=replicas s=server t=tty v=v w=watch""".split()
}
_SHORT_OF = {
    "delete": {"i": "interactive"},
    "expose": {"l": "labels"},
    "logs": {"f": "follow", "p": "previous"},
    "run": {"l": "labels"},
    "set": {"c": "containers"},
}
PARTS: dict[str, dict[str, str]] = {
    "apply": {name: name for name in ("edit-last-applied", "set-last-applied", "view-last-applied")},
    "auth": {name: name for name in ("can-i", "reconcile", "whoami")},
    "certificate": {name: name for name in ("approve", "deny")},
    "cluster-info": {"dump": "dump"},
    "create": {
        name: names.split()[0]
        for names in """clusterrole,clusterrolebinding,configmap cm,cronjob cj,deployment deploy,ingress ing,job,
        namespace ns,poddisruptionbudget pdb,priorityclass pc,quota resourcequota,role,rolebinding,secret,service svc,
        serviceaccount sa,token""".split(",")
        for name in names.split()
    },
    "rollout": {name: name for name in ("history", "pause", "restart", "resume", "status", "undo")},
    "set": {
        name: names.split()[0]
        for names in ("env", "image", "resources", "selector", "serviceaccount sa", "subject")
        for name in names.split()
    },
    "top": {"node": "node", "nodes": "node", "no": "node", "pod": "pod", "pods": "pod", "po": "pod"},
}
"""Verbs that have verbs of their own, with their other names."""
_FALSE = frozenset(("false", "f", "F", "FALSE", "False", "0"))


@dataclass(frozen=True, slots=True)
class Piece:
    """A flag by its long name, with its value if it has one; or a plain word, where `flag` is empty."""

    flag: str
    value: str | None = None

    @property
    def word(self) -> str:
        if not self.flag:
            return self.value or ""
        return f"--{self.flag}" if self.value is None else f"--{self.flag}={self.value}"


@dataclass(frozen=True, slots=True)
class KubectlLine:
    words: tuple[str, ...]
    """As they were given."""
    verb: str
    part: str
    """Of verbs that have some: `rollout restart`."""
    pieces: tuple[Piece, ...]
    """All but the verb, its part, and what follows `--`."""
    remote: tuple[str, ...] = ()
    """`--` and what follows it, which is no flag of kubectl's."""

    def values(self, flag: str) -> list[str | None]:
        return [piece.value for piece in self.pieces if piece.flag == flag]

    def has(self, *flags: str) -> bool:
        """One of these switches is on: the last time it is given counts."""
        return any(found and found[-1] not in _FALSE for found in map(self.values, flags))

    def rewritten(self, keep: Callable[[Piece], bool] = lambda piece: True, more: Iterable[str] = ()) -> list[str]:
        """The line in one plain spelling: with those of its flags that are to be kept, and more."""
        head = [self.verb, self.part] if self.part else [self.verb]
        kept = [piece.word for piece in self.pieces if not piece.flag or keep(piece)]
        return [*head, *kept, *more, *self.remote]


def take_apart(words: Sequence[str]) -> KubectlLine:
    """The line; BadAction where kubectl itself could not read it."""
    if any("\0" in word for word in words):
        raise BadAction("a command line holds no null characters")
    at = _next_plain(words, _GLOBAL)
    if at is None:
        raise BadAction("kubectl wants a verb: kubectl get pods --all-namespaces")
    verb, part = words[at], ""
    rest = [*words[:at], *words[at + 1 :]]
    if verb in PARTS:
        inner = _next_plain(rest, _BEFORE_PART.get(verb, _GLOBAL))
        if inner is not None and rest[inner] in PARTS[verb]:
            part = PARTS[verb][rest[inner]]
            rest = [*rest[:inner], *rest[inner + 1 :]]
    pieces, remote = _pieces(verb, rest)
    return KubectlLine(tuple(words), verb, part, tuple(pieces), tuple(remote))


def _next_plain(words: Sequence[str], switches: frozenset[str]) -> int | None:
    """Where cobra finds the name of a command: a flag that it does not know as a switch takes the next word along."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return None
        if word and not word.startswith("-"):
            return at
        long = word.startswith("--")
        alone = "=" not in word and (long or len(word) == 2)
        name = word[2:] if long else _SHORT.get(word[1:], "")
        at += 2 if alone and name not in switches else 1
    return None


def _pieces(verb: str, words: Sequence[str]) -> tuple[list[Piece], list[str]]:
    pieces: list[Piece] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            return pieces, ["--", *waiting]
        if not word.startswith("-") or word == "-":
            pieces.append(Piece("", word))
        elif word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not name or name.startswith("-"):
                raise BadAction(f"bad flag syntax: {word}")
            pieces.append(Piece(name, value if equals else _value(verb, name, waiting, word)))
        else:
            pieces += _short_flags(verb, word[1:], waiting)
    return pieces, []


def _takes_none(verb: str, name: str) -> bool:
    return name in SWITCHES or name in OPTIONAL or name in _SWITCHES_OF.get(verb, ())


def _value(verb: str, name: str, waiting: list[str], word: str) -> str | None:
    if _takes_none(verb, name):
        return None
    if not waiting:
        raise BadAction(f"{word} needs a value, or is no flag of `kubectl {verb}`")
    return waiting.pop(0)


def _short_flags(verb: str, letters: str, waiting: list[str]) -> Iterable[Piece]:
    """`-it`, `-Rf -`, `-ojson`, `-n=shop`."""
    while letters:
        letter, letters = letters[0], letters[1:]
        name = _SHORT_OF.get(verb, {}).get(letter) or _SHORT.get(letter)
        if name is None:
            raise BadAction(f"unknown shorthand flag: -{letter}")
        if len(letters) > 1 and letters[0] == "=":
            yield Piece(name, letters[1:])
            return
        if _takes_none(verb, name):
            yield Piece(name)
            continue
        yield Piece(name, letters or _value(verb, name, waiting, f"-{letter}"))
        return
