"""Taking SQL text apart: statements at their semicolons, the tables they name, and what is quoted in them."""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"""
    (?P<comment>--[^\n]*|/\*.*?\*/)
  | (?P<quoted>[eE]?'(?:[^'\\]|''|\\.)*'|"(?:[^"]|"")*"|`[^`]*`|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
  | (?P<end>;)
  | (?P<other>[^'"`;$/\-eE]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME = r'(?:"[^"]+"|`[^`]+`|\w+)'
_QUALIFIED = rf"{_NAME}(?:\.{_NAME})?"
_TABLES = re.compile(
    rf"\b(?:FROM|JOIN|INTO|UPDATE|TRUNCATE(?:\s+TABLE)?|LOCK\s+TABLES?|TABLE(?:\s+IF(?:\s+NOT)?\s+EXISTS)?|REFERENCES)"
    rf"\s+(?:ONLY\s+)?({_QUALIFIED}(?:\s*,\s*{_QUALIFIED})*)",
    re.IGNORECASE,
)
_NOT_TABLES = frozenset(("select", "values", "set", "lateral", "if", "only", "unnest", "generate_series"))


def split(text: str) -> tuple[list[str], str]:
    """The complete statements, and what is left after the last semicolon."""
    statements: list[str] = []
    current = ""
    for piece in _PIECE.finditer(text):
        if piece.lastgroup == "comment" or piece.group("comment"):
            current += " "
        elif piece.group("end"):
            if current.strip():
                statements.append(current.strip())
            current = ""
        else:
            current += piece.group()
    return statements, current.strip()


def masked(statement: str) -> tuple[str, list[str]]:
    """The statement with each string literal replaced by a numbered mark, and the literals."""
    literals: list[str] = []

    def replace(found: re.Match[str]) -> str:
        literals.append(found.group())
        return f"\x01{len(literals) - 1}\x01"

    return re.sub(r"[eE]?'(?:[^'\\]|''|\\.)*'", replace, statement), literals


def unmasked(statement: str, literals: list[str]) -> str:
    return re.sub(r"\x01(\d+)\x01", lambda found: literals[int(found.group(1))], statement)


def unquoted(name: str) -> str:
    """An identifier without its quotes; unquoted ones are lower case, as PostgreSQL folds them."""
    return name[1:-1] if name[:1] in ('"', "`") else name


def words_of(statement: str, count: int = 4) -> list[str]:
    """The first words, in capitals."""
    return [word.upper() for word in re.findall(r"[\w.\"`]+", statement)[:count]]


def tables_of(statement: str) -> list[str]:
    """The tables a statement names, in order, as `schema.table` or `table`."""
    text, _ = masked(statement)
    found: list[str] = []
    for match in _TABLES.finditer(text):
        if match.start() and re.search(
            r"\b(?:EXTRACT|SUBSTRING|TRIM)\s*\([^()]*$", text[: match.start()], re.IGNORECASE
        ):
            continue
        for name in match.group(1).split(","):
            plain = ".".join(unquoted(part) for part in re.findall(_NAME, name.strip()))
            following = text[match.end() : match.end() + 1]
            if plain.lower() not in _NOT_TABLES and not (following == "(" and match.group().upper().startswith("FROM")):
                found.append(plain)
    return list(dict.fromkeys(found))


def literal(text: str) -> str:
    """The value of a quoted string."""
    body = text[2:-1] if text[:1] in "eE" else text[1:-1]
    return body.replace("''", "'").replace("\\'", "'")
