"""grep, egrep and fgrep."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from srearena.cluster.embedded.machine.files.streams import OpenFile
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland import glob_patterns
from srearena.cluster.embedded.userland.posix_regex import Match, Regex, RegexError, compile_regex
from srearena.cluster.embedded.userland.tools.inputs import LineReader, opened
from srearena.cluster.embedded.userland.tools.options import Options, UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.wording import complain

_LONG = {
    "extended-regexp": "E",
    "fixed-strings": "F",
    "basic-regexp": "G",
    "perl-regexp": "P",
    "ignore-case": "i",
    "invert-match": "v",
    "word-regexp": "w",
    "line-regexp": "x",
    "count": "c",
    "files-with-matches": "l",
    "files-without-match": "L",
    "max-count=": "m",
    "only-matching": "o",
    "quiet": "q",
    "silent": "q",
    "no-messages": "s",
    "line-number": "n",
    "with-filename": "H",
    "no-filename": "h",
    "recursive": "r",
    "text": "a",
    "color?=": "color",
    "colour?=": "color",
    "line-buffered": "line-buffered",
    "after-context=": "A",
    "before-context=": "B",
    "context=": "C",
    "regexp=": "e",
    "file=": "f",
    "include=": "include",
    "exclude=": "exclude",
    "exclude-dir=": "exclude-dir",
}
_NUMBER_OPTION = re.compile(r"-(\d+)\Z")


@dataclass(slots=True)
class _Search:
    """What is looked for and how it is shown."""

    process: Process
    options: Options
    regexes: list[Regex]
    show_names: bool
    before: int
    after: int
    most: int | None

    def find(self, text: str, start: int = 0) -> Match | None:
        """The leftmost (and of those the longest) match that the options allow."""
        best: Match | None = None
        for regex in self.regexes:
            found = self._find_one(regex, text, start)
            if found is not None and (best is None or (found.start, -found.end) < (best.start, -best.end)):
                best = found
        return best

    def _find_one(self, regex: Regex, text: str, start: int) -> Match | None:
        while start <= len(text):
            found = regex.search(text, start)
            if found is None:
                return None
            if "x" in self.options:
                return found if (found.start, found.end) == (0, len(text)) else None
            if "w" not in self.options or _is_word(text, found):
                return found
            start = found.start + 1
        return None


def _is_word(text: str, found: Match) -> bool:
    before = text[found.start - 1 : found.start] if found.start else ""
    after = text[found.end : found.end + 1]
    return not (before.isalnum() or before == "_") and not (after.isalnum() or after == "_")


async def _patterns(process: Process, options: Options) -> list[str]:
    texts = list(options.all("e"))
    for path in options.all("f"):
        file = await opened(process, "grep", path)
        if file is None:
            raise UsageError(f"{path}: No such file or directory")
        lines = LineReader(process, file)
        while (line := await lines.next()) is not None:
            texts.append(line.decode(errors="surrogateescape").rstrip("\n"))
        file.release()
    if not texts and "f" not in options:
        if not options.operands:
            raise UsageError("usage: grep [OPTION]... PATTERNS [FILE]...")
        texts.append(options.operands.pop(0))
    return [line for text in texts for line in text.split("\n")]


def _compiled(options: Options, texts: list[str]) -> list[Regex]:
    ignore = "i" in options or "y" in options
    extended = "E" in options or "P" in options
    result = []
    for text in texts:
        if "F" in options:
            text = re.sub(r"([][\\.*^$])", r"\\\1", text)
        if "x" in options:
            text = f"^({text})$" if extended else f"^\\({text}\\)$"
        result.append(compile_regex(text, extended=extended and "F" not in options, ignore_case=ignore))
    return result


@tool("grep", "egrep", "fgrep")
async def grep(process: Process, args: list[str]) -> int:
    words: list[str] = []
    for arg in args:
        number = _NUMBER_OPTION.match(arg)
        words += ["-C", number.group(1)] if number else [arg]
    options = parse(words, "EFGPivwxclLoqsnHhrRaIzyU", "efmABC", long=_LONG)
    if process.name in ("egrep", "fgrep"):
        options.flags.add(process.name[0].upper())
    try:
        regexes = _compiled(options, await _patterns(process, options))
    except RegexError as error:
        await process.error(f"grep: {error}\n")
        return 2
    recursive = bool({"r", "R"} & options.flags)
    paths = options.operands or (["."] if recursive else ["-"])
    context = options.number("C", 0, "context length argument")
    most = options.number("m", -1, "max count")
    search = _Search(
        process,
        options,
        regexes,
        show_names=("H" in options or len(paths) > 1 or recursive) and "h" not in options,
        before=max(0, options.number("B", context, "context length argument")),
        after=max(0, options.number("A", context, "context length argument")),
        most=most if most >= 0 else None,
    )
    found = failed = False
    for path in await _expanded(process, options, paths) if recursive else paths:
        outcome = await _grep_file(search, path)
        found = found or outcome is True
        failed = failed or outcome is None
        if found and "q" in options:
            return 0
    return 2 if failed else 0 if found else 1


async def _expanded(process: Process, options: Options, paths: list[str]) -> list[str]:
    """The files below the given places. Links are followed only where they were named, so no walk goes in circles."""
    included = [glob_patterns.compiled(text) for text in options.all("include")]
    excluded = [glob_patterns.compiled(text) for text in options.all("exclude")]
    shut = [glob_patterns.compiled(text) for text in options.all("exclude-dir")]
    files = process.files
    result: list[str] = []
    todo = [(path, True) for path in reversed(paths)]
    while todo:
        path, named = todo.pop()
        name = posixpath.basename(path.rstrip("/")) or path
        found = files.stat(path, follow=named) if files.exists(path, follow=named) else None
        if found is not None and found.is_dir:
            await process.spend()
            if any(pattern.matches(name) for pattern in shut):
                continue
            try:
                names = files.listdir(path)
            except OSError:
                result.append(path)
                continue
            bare = path == "." and not options.operands
            todo.extend((child if bare else posixpath.join(path, child), False) for child in reversed(names))
        elif named or (found is not None and found.is_file):
            if included and not any(pattern.matches(name) for pattern in included):
                continue
            if not any(pattern.matches(name) for pattern in excluded):
                result.append(path)
    return result


async def _grep_file(search: _Search, path: str) -> bool | None:
    """Whether a line was selected; None where the file could not be read."""
    process, options = search.process, search.options
    quiet = "s" in options
    file: OpenFile | None
    if quiet:
        try:
            file = process.fd(0).retain() if path == "-" else process.open(path, "r")
        except OSError:
            file = None
    else:
        file = await opened(process, "grep", path)
    if file is None:
        return None
    try:
        return await _grep_lines(search, file, "(standard input)" if path == "-" else path)
    except BrokenPipeError:
        raise
    except OSError as error:
        if not quiet:
            if error.errno == 21:
                await process.error(f"grep: {path}: Is a directory\n")
            else:
                await complain(process, "grep", path, error)
        return None
    finally:
        file.release()


async def _grep_lines(search: _Search, file: OpenFile, name: str) -> bool:
    process, options = search.process, search.options
    lines = LineReader(process, file)
    count = number = 0
    last_shown = 0
    trailing = 0
    earlier: list[tuple[int, str]] = []
    inverted = "v" in options
    silent = bool({"c", "l", "L", "q"} & options.flags)
    while (raw := await lines.next()) is not None:
        number += 1
        if number % 256 == 0:
            await process.spend()
        text = raw.decode(errors="surrogateescape").removesuffix("\n")
        found = search.find(text)
        if (found is not None) is inverted:
            if trailing > 0:
                trailing -= 1
                last_shown = number
                await process.write(_line(search, name, number, text, "-"))
            elif search.before:
                earlier = [*earlier, (number, text)][-search.before :]
            continue
        count += 1
        if {"q", "l"} & options.flags:
            break
        if not silent:
            first = earlier[0][0] if earlier else number
            if last_shown and (search.before or search.after) and first > last_shown + 1:
                await process.write("--\n")
            for earlier_number, earlier_text in earlier:
                await process.write(_line(search, name, earlier_number, earlier_text, "-"))
            earlier = []
            if "o" in options:
                await _show_matches(search, name, number, text)
            else:
                await process.write(_line(search, name, number, text, ":"))
            last_shown = number
            trailing = search.after
        if search.most is not None and count >= search.most:
            break
    if "c" in options:
        await process.write(f"{name}:{count}\n" if search.show_names else f"{count}\n")
    if "l" in options and count and "q" not in options:
        await process.write(f"{name}\n")
    if "L" in options and not count:
        await process.write(f"{name}\n")
    return count > 0


async def _show_matches(search: _Search, name: str, number: int, text: str) -> None:
    start = 0
    while "v" not in search.options and (found := search.find(text, start)) is not None:
        if found.end > found.start:
            await search.process.write(_line(search, name, number, text[found.start : found.end], ":"))
        start = max(found.end, found.start + 1)


def _line(search: _Search, name: str, number: int, text: str, mark: str) -> str:
    prefix = f"{name}{mark}" if search.show_names else ""
    if "n" in search.options:
        prefix += f"{number}{mark}"
    return f"{prefix}{text}\n"
