"""find: a walk over the tree with tests and actions."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from srearena.cluster.embedded.machine.files.filesystem import FileStat
from srearena.cluster.embedded.machine.files.inodes import Device
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland import glob_patterns
from srearena.cluster.embedded.userland.tools.listing import accounts_of, human_size, mode_text
from srearena.cluster.embedded.userland.tools.options import UsageError
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.running import run_program
from srearena.cluster.embedded.userland.tools.wording import complain

Test = Callable[[str, FileStat], Awaitable[bool]]
_SIZES = {"": 512, "b": 512, "c": 1, "w": 2, "k": 1024, "M": 1024**2, "G": 1024**3}


@dataclass(slots=True)
class _Find:
    process: Process
    words: list[str]
    max_depth: int | None = None
    min_depth: int = 0
    depth_first: bool = False
    acts: bool = False
    pruned: set[str] = field(default_factory=set)
    gathered: list[tuple[list[str], list[str]]] = field(default_factory=list)
    """Commands of `-exec ... +` with the paths for them."""
    status: int = 0
    nesting: int = 0

    # --- the expression --------------------------------------------------------------------------------------

    def parse(self) -> Test:
        test = self._either() if self.words else _always
        if self.words:
            raise UsageError(f"paths must precede expression: '{self.words[0]}'")
        return test

    def _either(self) -> Test:
        self.nesting += 1
        if self.nesting > 40:
            raise UsageError("expression nested too deeply")
        left = self._both()
        while self.words and self.words[0] in ("-o", "-or"):
            self.words.pop(0)
            left = _either(left, self._both())
        return left

    def _both(self) -> Test:
        left = self._single()
        while self.words and self.words[0] not in ("-o", "-or", ")"):
            if self.words[0] in ("-a", "-and"):
                self.words.pop(0)
            left = _both(left, self._single())
        return left

    def _single(self) -> Test:
        if not self.words:
            raise UsageError("expected an expression")
        word = self.words.pop(0)
        if word in ("!", "-not"):
            return _negated(self._single())
        if word == "(":
            inner = self._either()
            if not self.words or self.words.pop(0) != ")":
                raise UsageError("expected ')'")
            return inner
        return self._primary(word)

    def _argument(self, word: str) -> str:
        if not self.words:
            raise UsageError(f"missing argument to '{word}'")
        return self.words.pop(0)

    def _primary(self, word: str) -> Test:
        if word in ("-exec", "-execdir", "-ok"):
            return self._exec()
        if word in ("-print", "-print0", "-ls", "-delete", "-quit", "-printf"):
            self.acts = True
            return self._action(word)
        simple: dict[str, Callable[[], Test]] = {
            "-prune": lambda: self._prune,
            "-true": lambda: _always,
            "-empty": lambda: self._empty,
            "-depth": self._set_depth_first,
            "-xdev": lambda: _always,
            "-mount": lambda: _always,
        }
        if word in simple:
            return simple[word]()
        if word in ("-maxdepth", "-mindepth"):
            value = self._argument(word)
            if not value.isdigit():
                raise UsageError(f"Expected a positive decimal integer argument to {word}, but got '{value}'")
            if word == "-maxdepth":
                self.max_depth = int(value)
            else:
                self.min_depth = int(value)
            return _always
        return self._comparison(word, self._argument(word) if word.startswith("-") else "")

    def _comparison(self, word: str, value: str) -> Test:
        now = self.process.clock.now
        match word:
            case "-name" | "-iname":
                return _matching(value, word == "-iname", lambda path: posixpath.basename(path.rstrip("/")) or "/")
            case "-path" | "-wholename" | "-ipath":
                return _matching(value, word == "-ipath", lambda path: path)
            case "-type":
                return _plain(lambda path, found: _kind(found) in value.split(","))
            case "-size":
                match = re.fullmatch(r"([-+]?)(\d{1,15})([bcwkMG]?)", value)
                if match is None:
                    raise UsageError(f"Invalid argument '{value}' to -size")
                unit = _SIZES[match.group(3)]
                return _numeric(match.group(1), int(match.group(2)), lambda found: -(-found.size // unit))
            case "-mtime" | "-mmin" | "-ctime" | "-cmin" | "-atime" | "-amin":
                match = re.fullmatch(r"([-+]?)(\d{1,9})", value)
                if match is None:
                    raise UsageError(f"invalid argument '{value}' to '{word}'")
                unit = 86400 if word.endswith("time") else 60
                return _numeric(
                    match.group(1), int(match.group(2)), lambda found: int((now - found.node.mtime) // unit)
                )
            case "-newer":
                moment = self.process.files.stat(value).node.mtime if self.process.files.exists(value) else now
                return _plain(lambda path, found: found.node.mtime > moment)
            case "-user" | "-uid":
                return _plain(
                    lambda path, found: (
                        value in (str(found.node.uid), accounts_of(self.process).user_name(found.node.uid))
                    )
                )
            case "-group" | "-gid":
                return _plain(
                    lambda path, found: (
                        value in (str(found.node.gid), accounts_of(self.process).group_name(found.node.gid))
                    )
                )
            case "-perm":
                match = re.fullmatch(r"([-/]?)([0-7]{1,4})", value)
                if match is None:
                    raise UsageError(f"invalid mode '{value}'")
                return _permissions(match.group(1), int(match.group(2), 8))
        raise UsageError(f"unknown predicate '{word}'")

    def _set_depth_first(self) -> Test:
        self.depth_first = True
        return _always

    # --- actions ---------------------------------------------------------------------------------------------

    def _action(self, word: str) -> Test:
        process = self.process
        template = self._argument(word) if word == "-printf" else ""
        if word == "-delete":
            self.depth_first = True

        async def act(path: str, found: FileStat) -> bool:
            if word == "-print":
                await process.write(f"{path}\n")
            elif word == "-print0":
                await process.write(f"{path}\0")
            elif word == "-printf":
                await process.write(_printed(process, template, path, found))
            elif word == "-ls":
                await process.write(f"{mode_text(found)} {human_size(found.size)} {path}\n")
            elif word == "-quit":
                raise _Quit
            elif path != ".":
                try:
                    if found.is_dir:
                        process.files.rmdir(path)
                    else:
                        process.files.unlink(path)
                except OSError as error:
                    await process.error(f"find: cannot delete '{path}': {error.strerror}\n")
                    self.status = 1
                    return False
            return True

        return act

    def _exec(self) -> Test:
        self.acts = True
        words: list[str] = []
        while True:
            if not self.words:
                raise UsageError("missing argument to '-exec'")
            word = self.words.pop(0)
            if word == ";" or (word == "+" and words and words[-1] == "{}"):
                break
            words.append(word)
        if word == "+":
            paths: list[str] = []
            self.gathered.append((words[:-1], paths))

            async def gather(path: str, found: FileStat) -> bool:
                paths.append(path)
                return True

            return gather

        async def execute(path: str, found: FileStat) -> bool:
            return await run_program(self.process, [word.replace("{}", path) for word in words], "find") == 0

        return execute

    async def _prune(self, path: str, found: FileStat) -> bool:
        self.pruned.add(path)
        return True

    async def _empty(self, path: str, found: FileStat) -> bool:
        if found.is_dir:
            return not self.process.files.listdir(path)
        return found.is_file and found.size == 0

    # --- the walk --------------------------------------------------------------------------------------------

    async def walk(self, path: str, test: Test, depth: int = 0) -> None:
        await self.process.spend()
        try:
            found = self.process.files.stat(path, follow=False)
        except OSError as error:
            await complain(self.process, "find", path, error)
            self.status = 1
            return
        if not self.depth_first and depth >= self.min_depth:
            await test(path, found)
        if found.is_dir and path not in self.pruned and (self.max_depth is None or depth < self.max_depth):
            try:
                names = self.process.files.listdir(path)
            except OSError as error:
                await complain(self.process, "find", path, error)
                self.status = 1
                names = []
            for name in names:
                await self.walk(posixpath.join(path, name), test, depth + 1)
        if self.depth_first and depth >= self.min_depth:
            await test(path, found)


class _Quit(Exception):
    pass


async def _always(path: str, found: FileStat) -> bool:
    return True


def _plain(check: Callable[[str, FileStat], bool]) -> Test:
    async def test(path: str, found: FileStat) -> bool:
        return check(path, found)

    return test


def _either(left: Test, right: Test) -> Test:
    async def test(path: str, found: FileStat) -> bool:
        return await left(path, found) or await right(path, found)

    return test


def _both(left: Test, right: Test) -> Test:
    async def test(path: str, found: FileStat) -> bool:
        return await left(path, found) and await right(path, found)

    return test


def _negated(inner: Test) -> Test:
    async def test(path: str, found: FileStat) -> bool:
        return not await inner(path, found)

    return test


def _matching(pattern: str, ignore_case: bool, part: Callable[[str], str]) -> Test:
    compiled = glob_patterns.compiled(pattern.lower() if ignore_case else pattern)
    return _plain(lambda path, found: compiled.matches(part(path).lower() if ignore_case else part(path)))


def _numeric(sign: str, expected: int, measure: Callable[[FileStat], int]) -> Test:
    if sign == "+":
        return _plain(lambda path, found: measure(found) > expected)
    if sign == "-":
        return _plain(lambda path, found: measure(found) < expected)
    return _plain(lambda path, found: measure(found) == expected)


def _permissions(sign: str, expected: int) -> Test:
    if sign == "-":
        return _plain(lambda path, found: found.node.mode & expected == expected)
    if sign == "/":
        return _plain(lambda path, found: bool(found.node.mode & expected))
    return _plain(lambda path, found: found.node.mode == expected)


def _kind(found: FileStat) -> str:
    if found.is_dir:
        return "d"
    if found.is_link:
        return "l"
    return "c" if isinstance(found.node, Device) else "f"


def _printed(process: Process, template: str, path: str, found: FileStat) -> str:
    values = {
        "p": path,
        "f": posixpath.basename(path) or path,
        "h": posixpath.dirname(path) or ".",
        "s": str(found.size),
        "m": f"{found.node.mode:o}",
        "M": mode_text(found),
        "u": accounts_of(process).user_name(found.node.uid),
        "g": accounts_of(process).group_name(found.node.gid),
        "y": _kind(found),
        "P": path,
        "%": "%",
    }
    text = re.sub(r"%(.)", lambda match: values.get(match.group(1), match.group(0)), template)
    return text.replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0")


@tool("find")
async def find(process: Process, args: list[str]) -> int:
    words = [arg for arg in args if arg not in ("-L", "-H", "-P")]
    places: list[str] = []
    while words and not words[0].startswith("-") and words[0] not in ("(", "!"):
        places.append(words.pop(0))
    search = _Find(process, words)
    test = search.parse()
    if not search.acts:
        test = _both(test, search._action("-print"))
    try:
        for place in places or ["."]:
            await search.walk(place, test)
    except _Quit:
        pass
    for command, paths in search.gathered:
        if paths and await run_program(process, [*command, *paths], "find"):
            search.status = 1
    return search.status
