"""The `s` command: matches found one after the other and replaced by a template."""

from __future__ import annotations

from srearena.cluster.embedded.userland.posix_regex import Match, Regex


def _filled(template: str, text: str, found: Match) -> str:
    """A replacement with & and \\1 filled in, and \\U \\L \\E obeyed."""
    result: list[str] = []
    change = ""
    once = ""
    index = 0

    def add(piece: str) -> None:
        nonlocal once
        if change:
            piece = piece.upper() if change == "U" else piece.lower()
        if once and piece:
            piece = (piece[0].upper() if once == "u" else piece[0].lower()) + piece[1:]
            once = ""
        result.append(piece)

    while index < len(template):
        char = template[index]
        index += 1
        if char == "&":
            add(text[found.start : found.end])
        elif char == "\\" and index < len(template):
            following = template[index]
            index += 1
            if following.isdigit():
                span = (found.start, found.end) if following == "0" else None
                if following != "0" and int(following) <= len(found.groups):
                    span = found.groups[int(following) - 1]
                add("" if span is None else text[span[0] : span[1]])
            elif following in "ULE":
                change = "" if following == "E" else following
            elif following in "ul":
                once = following
            else:
                add({"n": "\n", "t": "\t", "r": "\r"}.get(following, following))
        else:
            add(char)
    return "".join(result)


def substituted(text: str, regex: Regex, template: str, *, everywhere: bool, number: int) -> tuple[str, int]:
    """The text with matches replaced, and how many were."""
    result: list[str] = []
    position = start = count = seen = 0
    while start <= len(text) and (found := regex.search(text, start)) is not None:
        if found.start == found.end and found.start < position:
            start = found.start + 1
            continue
        if found.start == found.end == position and seen and position > 0 and start == position:
            # An empty match right behind the last one does not count.
            if position >= len(text):
                break
            start = position + 1
            empty = regex.search(text, start)
            if empty is None:
                break
            found = empty
        seen += 1
        if seen >= number:
            result.append(text[position : found.start])
            result.append(_filled(template, text, found))
            position = found.end
            count += 1
            if not everywhere:
                break
        if found.end == found.start:
            start = found.end + 1
        else:
            start = found.end
    result.append(text[position:])
    return "".join(result), count
