"""Parses a kubectl command line the way kubectl itself does.

Whether a command may run, and what it changes, must be decided on what kubectl will execute, not on what the line looks
like: `-n -- --kubeconfig=x` has a namespace called `--` and then a flag, and `auth --x whoami reconcile` is a
`reconcile`. So the rules are those of its libraries (cobra for verbs, pflag for flags), and the table of flags without
a value is compared with the help text of the installed kubectl in a test.

Invariant: serializing a parsed line (`rewritten`) gives a line with the same meaning.
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
_BEFORE_SUBCOMMAND = {
    "create": _GLOBAL.union(
        """allow-missing-template-keys dry-run edit recursive save-config show-managed-fields validate
        windows-line-endings""".split()
    ),
    "apply": _GLOBAL.union(
        """all allow-missing-template-keys cascade dry-run force force-conflicts openapi-patch overwrite prune recursive
        server-side show-managed-fields validate wait""".split()
    ),
}
"""Flags without a value that may stand before a subcommand: those of the verb itself."""
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
SUBCOMMANDS: dict[str, dict[str, str]] = {
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
"""Verbs with subcommands, by all aliases."""
_FALSE = frozenset(("false", "f", "F", "FALSE", "False", "0"))


@dataclass(frozen=True, slots=True)
class Argument:
    """A flag by its long name, with its value if it has one; or a positional argument, where `flag` is empty."""

    flag: str
    value: str | None = None

    @property
    def word(self) -> str:
        if not self.flag:
            return self.value or ""
        return f"--{self.flag}" if self.value is None else f"--{self.flag}={self.value}"


@dataclass(frozen=True, slots=True)
class KubectlCommand:
    """A parsed kubectl command line."""

    words: tuple[str, ...]
    """The original words."""
    verb: str
    subcommand: str
    """The subcommand of verbs that have some, such as `restart` of `rollout restart`; empty otherwise."""
    arguments: tuple[Argument, ...]
    """All arguments except the verb, its subcommand, and what follows `--`."""
    remote: tuple[str, ...] = ()
    """`--` and the command that follows it, which is not parsed."""

    def values(self, flag: str) -> list[str | None]:
        return [argument.value for argument in self.arguments if argument.flag == flag]

    def has(self, *flags: str) -> bool:
        """Whether one of these switches is on; its last occurrence counts."""
        return any(values and values[-1] not in _FALSE for values in map(self.values, flags))

    def rewritten(
        self, keep: Callable[[Argument], bool] = lambda argument: True, more: Iterable[str] = ()
    ) -> list[str]:
        """Serialize the command in canonical form, with the flags that `keep` accepts and with more words."""
        head = [self.verb, self.subcommand] if self.subcommand else [self.verb]
        arguments = [argument.word for argument in self.arguments if not argument.flag or keep(argument)]
        return [*head, *arguments, *more, *self.remote]


def parse_command(words: Sequence[str]) -> KubectlCommand:
    """Parse the words after `kubectl`; BadAction where kubectl itself could not parse them."""
    if any("\0" in word for word in words):
        raise BadAction("a command line must not contain null characters")
    position = _find_command(words, _GLOBAL)
    if position is None:
        raise BadAction("kubectl needs a verb: kubectl get pods --all-namespaces")
    verb, subcommand = words[position], ""
    remaining = [*words[:position], *words[position + 1 :]]
    if verb in SUBCOMMANDS:
        inner = _find_command(remaining, _BEFORE_SUBCOMMAND.get(verb, _GLOBAL))
        if inner is not None and remaining[inner] in SUBCOMMANDS[verb]:
            subcommand = SUBCOMMANDS[verb][remaining[inner]]
            remaining = [*remaining[:inner], *remaining[inner + 1 :]]
    arguments, remote = _parse_arguments(verb, remaining)
    return KubectlCommand(tuple(words), verb, subcommand, tuple(arguments), tuple(remote))


def _find_command(words: Sequence[str], switches: frozenset[str]) -> int | None:
    """The position at which cobra finds the name of a command: an unknown flag consumes the next word."""
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


def _parse_arguments(verb: str, words: Sequence[str]) -> tuple[list[Argument], list[str]]:
    arguments: list[Argument] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            return arguments, ["--", *waiting]
        if not word.startswith("-") or word == "-":
            arguments.append(Argument("", word))
        elif word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not name or name.startswith("-"):
                raise BadAction(f"bad flag syntax: {word}")
            arguments.append(Argument(name, value if equals else _value(verb, name, waiting, word)))
        else:
            arguments += _short_flags(verb, word[1:], waiting)
    return arguments, []


def _is_switch(verb: str, name: str) -> bool:
    return name in SWITCHES or name in OPTIONAL or name in _SWITCHES_OF.get(verb, ())


def _value(verb: str, name: str, waiting: list[str], word: str) -> str | None:
    if _is_switch(verb, name):
        return None
    if not waiting:
        raise BadAction(f"{word} needs a value, or is not a flag of `kubectl {verb}`")
    return waiting.pop(0)


def _short_flags(verb: str, letters: str, waiting: list[str]) -> Iterable[Argument]:
    """`-it`, `-Rf -`, `-ojson`, `-n=shop`."""
    while letters:
        letter, letters = letters[0], letters[1:]
        name = _SHORT_OF.get(verb, {}).get(letter) or _SHORT.get(letter)
        if name is None:
            raise BadAction(f"unknown shorthand flag: -{letter}")
        if len(letters) > 1 and letters[0] == "=":
            yield Argument(name, letters[1:])
            return
        if _is_switch(verb, name):
            yield Argument(name)
            continue
        yield Argument(name, letters or _value(verb, name, waiting, f"-{letter}"))
        return
