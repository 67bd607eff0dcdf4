"""Command-line options of the tools, and the complaint about one that does not exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.wording import speaks_busybox

_USAGE_STATUS = {"ls": 2, "grep": 2, "egrep": 2, "fgrep": 2, "sort": 2, "diff": 2, "cmp": 2, "env": 125, "tty": 2}
"""What GNU tools return for a usage error, where it is not 1."""


class UsageError(Exception):
    """The arguments make no sense to the tool."""

    def __init__(self, message: str, *, option: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.option = option

    def text(self, process: Process) -> str:
        name = process.name
        if name == "curl":
            dashes = "--" if len(self.option) > 1 else "-"
            message = f"option {dashes}{self.option}: is unknown" if self.option else self.message
            return f"curl: {message}\ncurl: try 'curl --help' or 'curl --manual' for more information\n"
        if speaks_busybox(process):
            message = f"unrecognized option: {self.option}" if self.option else self.message
            return f"{name}: {message}\nBusyBox v1.36.1 multi-call binary.\n\nUsage: {name} [OPTIONS] [ARGS]...\n"
        return f"{name}: {self.message}\nTry '{name} --help' for more information.\n"

    def status(self, process: Process) -> int:
        if process.name == "curl":
            return 2
        if speaks_busybox(process):
            return 1
        return _USAGE_STATUS.get(process.name, 1)


@dataclass(slots=True)
class Options:
    flags: set[str] = field(default_factory=set)
    values: dict[str, list[str]] = field(default_factory=dict)
    operands: list[str] = field(default_factory=list)

    def __contains__(self, name: str) -> bool:
        return name in self.flags or name in self.values

    def value(self, name: str, default: str = "") -> str:
        found = self.values.get(name)
        return found[-1] if found else default

    def all(self, name: str) -> list[str]:
        return self.values.get(name, [])

    def number(self, name: str, default: int, what: str = "number") -> int:
        """An option that must be a whole number."""
        if name not in self.values:
            return default
        text = self.value(name)
        if not text.removeprefix("-").isdecimal() or len(text) > 18:
            raise UsageError(f"invalid {what}: '{text}'")
        return int(text)


def parse(
    args: list[str],
    flags: str = "",
    valued: str = "",
    *,
    long: Mapping[str, str] | None = None,
    stop_early: bool = False,
) -> Options:
    """Sort arguments into flags, options with values, and operands.

    `long` maps long names to short letters (or to themselves, where there is no short form); a name that ends in `=`
    takes a value, one that ends in `?=` may take one. With `stop_early` the first operand ends the options, as for
    commands that run others.
    """
    names = {(bare := name.rstrip("=?")): (name[len(bare) :], target) for name, target in (long or {}).items()}
    options = Options()
    words = list(args)
    while words:
        word = words.pop(0)
        if word == "--":
            options.operands += words
            break
        if word.startswith("--"):
            _long_option(word[2:], words, names, options)
        elif word.startswith("-") and len(word) > 1:
            _short_options(word[1:], words, flags, valued, options)
        else:
            options.operands.append(word)
            if stop_early:
                options.operands += words
                break
    return options


def _long_option(word: str, words: list[str], names: dict[str, tuple[str, str]], options: Options) -> None:
    name, equals, value = word.partition("=")
    if name not in names:
        candidates = [known for known in names if known.startswith(name)]
        if len(candidates) != 1:
            raise UsageError(f"unrecognized option '--{name}'", option=name)
        name = candidates[0]
    suffix, target = names[name]
    if not suffix or (suffix == "?=" and not equals):
        options.flags.add(target)
        return
    if not equals:
        if not words:
            raise UsageError(f"option '--{name}' requires an argument", option=name)
        value = words.pop(0)
    options.values.setdefault(target, []).append(value)


def _short_options(word: str, words: list[str], flags: str, valued: str, options: Options) -> None:
    for index, letter in enumerate(word):
        if letter in flags:
            options.flags.add(letter)
        elif letter in valued:
            value = word[index + 1 :]
            if not value:
                if not words:
                    raise UsageError(f"option requires an argument -- '{letter}'")
                value = words.pop(0)
            options.values.setdefault(letter, []).append(value)
            return
        else:
            raise UsageError(f"invalid option -- '{letter}'", option=letter)
