"""The command line of kubectl: flags anywhere, words in order."""

from __future__ import annotations

from collections.abc import Sequence

from srearena.cluster.embedded.programs.toolboxes.kubectl.errors import KubectlError

_SHORT = {"n": "namespace", "l": "selector", "o": "output", "p": "patch", "f": "filename", "c": "container"}
_SHORT_SWITCHES = {"A": "all-namespaces", "q": "quiet", "R": "recursive"}
_VALUES = frozenset(
    {
        *("namespace", "selector", "output", "patch", "filename", "container", "type", "replicas", "subresource"),
        *("field-selector", "grace-period", "timeout", "for", "cascade", "tail", "since", "patch-file", "sort-by"),
        *("current-replicas", "resource-version", "field-manager", "request-timeout", "kubeconfig", "context", "v"),
        *("token", "server", "limits", "requests", "containers", "revision", "image", "dry-run", "from-literal"),
    }
)
_OPTIONAL_VALUES = frozenset({"dry-run"})
_SWITCHES = frozenset(
    {
        *("all-namespaces", "quiet", "recursive", "all", "ignore-not-found", "overwrite", "force", "wait", "now"),
        *("no-headers", "server-side", "force-conflicts", "show-labels", "record", "previous", "timestamps", "watch"),
        *("local", "list", "client", "insecure-skip-tls-verify", "validate", "show-managed-fields"),
    }
)


class Arguments:
    def __init__(self, words: Sequence[str]) -> None:
        self.words: list[str] = []
        self._flags: dict[str, list[str]] = {}
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word == "--":
                self.words += rest
                break
            if word == "-" or not word.startswith("-"):
                self.words.append(word)
            elif word.startswith("--"):
                self._long(word[2:], rest)
            else:
                self._short(word[1:], rest)

    def _long(self, text: str, rest: list[str]) -> None:
        name, equals, value = text.partition("=")
        if name in _VALUES:
            if not equals and name not in _OPTIONAL_VALUES:
                if not rest:
                    raise KubectlError(f"error: flag needs an argument: --{name}")
                value = rest.pop(0)
        elif name in _SWITCHES:
            value = value if equals else "true"
        else:
            raise KubectlError(f"error: unknown flag: --{name}\nSee 'kubectl --help' for usage.")
        self._flags.setdefault(name, []).append(value)

    def _short(self, text: str, rest: list[str]) -> None:
        letter, value = text[0], text[1:].removeprefix("=")
        if letter in _SHORT_SWITCHES:
            self._flags.setdefault(_SHORT_SWITCHES[letter], []).append("true")
        elif letter in _SHORT:
            if not value:
                if not rest:
                    raise KubectlError(f"error: flag needs an argument: '{letter}' in -{letter}")
                value = rest.pop(0)
            self._flags.setdefault(_SHORT[letter], []).append(value)
        else:
            raise KubectlError(f"error: unknown shorthand flag: '{letter}' in -{text}\nSee 'kubectl --help' for usage.")

    def get(self, name: str, default: str = "") -> str:
        return self._flags.get(name, [default])[-1]

    def all(self, name: str) -> list[str]:
        return self._flags.get(name, [])

    def has(self, name: str) -> bool:
        return name in self._flags

    def switch(self, name: str, default: bool = False) -> bool:
        return self.get(name, str(default).lower()) == "true"
