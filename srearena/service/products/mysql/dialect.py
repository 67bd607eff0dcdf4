"""Translation of simple MySQL statements to SQLite's dialect."""

from __future__ import annotations

import re

from srearena.cluster.program_models.sql import masked, unmasked

_NAME = r"(?:`[^`]+`|\"[^\"]+\"|\w+)"
_PLACE = re.compile(
    rf"(\b(?:FROM|JOIN|INTO|UPDATE|TRUNCATE(?:\s+TABLE)?|TABLE(?:\s+IF(?:\s+NOT)?\s+EXISTS)?)\s+)({_NAME})"
    rf"(?!\s*\.)(?![\w`\"])",
    re.IGNORECASE,
)
_REWRITES: tuple[tuple[str, str], ...] = (
    (r"\bNOW\(\d*\)|\bCURRENT_TIMESTAMP(?:\(\d*\))?|\bSYSDATE\(\)", "now()"),
    (r"\b(USER|DATABASE|SCHEMA|VERSION|CONNECTION_ID|CURRENT_USER)\(\)", r"my_\1()"),
    (r"@@(?:GLOBAL\.|SESSION\.)?(\w+)", r"my_variable('\1')"),
    (r"\bINSERT\s+IGNORE\b", "INSERT OR IGNORE"),
    (r"\bFOR\s+UPDATE\s*$", ""),
    (r"\bLOCK\s+IN\s+SHARE\s+MODE\s*$", ""),
    (r"\bLIMIT\s+(\d+)\s*,\s*(\d+)", r"LIMIT \2 OFFSET \1"),
    (r"\bRLIKE\b|\bREGEXP\b", "LIKE"),
    (r"&&", " AND "),
    (r"\bFROM\s+DUAL\b", ""),
    (r"\bLEFT\s*\(", "left_("),
)
_TABLE_REWRITES: tuple[tuple[str, str], ...] = (
    (
        r"\b(?:TINY|SMALL|MEDIUM|BIG)?INT(?:EGER)?(?:\(\d+\))?(?:\s+UNSIGNED)?((?:\s+NOT\s+NULL)?)\s+AUTO_INCREMENT"
        r"(?:\s+PRIMARY\s+KEY)?",
        r"INTEGER PRIMARY KEY\1",
    ),
    (r"\bAUTO_INCREMENT(?:\s*=\s*\d+)?", ""),
    (r"\bUNSIGNED\b", ""),
    (r"\bENUM\s*\([^)]*\)", "TEXT"),
    (r"\bDEFAULT\s+now\(\)", "DEFAULT (now())"),
    (r"\bON\s+UPDATE\s+now\(\)", ""),
    (r"\bON\s+(?:DELETE|UPDATE)\s+(?:CASCADE|RESTRICT|NO\s+ACTION|SET\s+NULL)", ""),
    (r"\bCOMMENT\s*=?\s*\x01\d+\x01", ""),
    (r"\bCHARACTER\s+SET\s+\w+", ""),
    (r"\bCOLLATE\s*=?\s*\w+", ""),
    (r",\s*(?:UNIQUE\s+)?(?:KEY|INDEX)\s+`?\w*`?\s*\([^()]*(?:\(\d+\)[^()]*)*\)(?:\s+USING\s+\w+)?", ""),
    (r"\)\s*(?:ENGINE|DEFAULT\s+CHARSET|CHARSET|ROW_FORMAT|DEFAULT\s+CHARACTER)\b[^()]*$", ")"),
    (r"\bUSING\s+BTREE", ""),
)
_INDEX = re.compile(
    rf"CREATE\s+(UNIQUE\s+)?INDEX\s+({_NAME})\s+ON\s+(?:({_NAME})\.)?({_NAME})\s*(\(.*\))", re.IGNORECASE | re.DOTALL
)
_CHANGE = re.compile(
    rf"(ALTER\s+TABLE\s+\S+)\s+CHANGE(?:\s+COLUMN)?\s+({_NAME})\s+({_NAME})\s+.*$", re.IGNORECASE | re.DOTALL
)


def translated(statement: str, database: str) -> str:
    """Translate a statement for SQLite; unqualified tables are qualified with the session's database."""
    text, literals = masked(statement)
    literals = [_literal(item) for item in literals]
    for pattern, replacement in _REWRITES:
        text = re.sub(pattern, replacement, text, flags=re.IGNORECASE)
    if re.match(r"\s*CREATE\s", text, re.IGNORECASE):
        for pattern, replacement in _TABLE_REWRITES:
            text = re.sub(pattern, replacement, text, flags=re.IGNORECASE)
        if "INTEGER PRIMARY KEY" in text.upper():
            text = re.sub(r",\s*PRIMARY\s+KEY\s*\([^)]*\)", "", text, flags=re.IGNORECASE)
    text = _CHANGE.sub(r"\1 RENAME COLUMN \2 TO \3", text)
    index = _INDEX.match(text)
    if index is not None:
        unique, name, schema, table, columns = index.groups()
        text = f"CREATE {unique or ''}INDEX {schema or f'`{database}`'}.{name} ON {table} {columns}"
    elif database:
        text = _PLACE.sub(lambda match: _qualified(match, database), text)
    if re.match(r"\s*TRUNCATE\s", text, re.IGNORECASE):
        text = re.sub(r"\s*TRUNCATE\s+(?:TABLE\s+)?", "DELETE FROM ", text, flags=re.IGNORECASE)
    # After a dot every word is a name, even if it is a keyword of SQLite.
    text = re.sub(r"(?<=[A-Za-z0-9_`])\.([A-Za-z_]\w*)\b(?!\()", r".`\1`", text)
    return unmasked(text, literals)


def _qualified(match: re.Match[str], database: str) -> str:
    if match.group(2).upper() in ("SELECT", "VALUES", "SET", "IF", "UPDATE", "NOW"):
        return match.group()
    name = match.group(2)
    return f"{match.group(1)}`{database}`.{name if name[0] in '`' + chr(34) else f'`{name}`'}"


def _literal(text: str) -> str:
    body = text[1:-1].replace("\\'", "''").replace('\\"', '"').replace("\\\\", "\\").replace("\\n", "\n")
    return f"'{body}'"
