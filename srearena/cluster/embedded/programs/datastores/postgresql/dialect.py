"""PostgreSQL's SQL in the words of SQLite, as far as simple statements go."""

from __future__ import annotations

import re

from srearena.cluster.embedded.programs.datastores.sql.statements import masked, unmasked

_REWRITES: tuple[tuple[str, str], ...] = (
    (r"\b([\w.]+|\x01\d+\x01)::regclass\b", r"regclass(\1)"),
    (r"\s*::\s*(?:timestamp|time)\s+with(?:out)?\s+time\s+zone", ""),
    (r"\s*::\s*double\s+precision", ""),
    (r"::\s*[a-zA-Z_]\w*(?:\(\d+(?:,\s*\d+)?\))?(?:\[\])?", ""),
    (r"\b(?:now\(\)|current_timestamp|clock_timestamp\(\))\s*-\s*interval\s+(\x01\d+\x01)", r"ago(\1)"),
    (r"\b(?:now\(\)|current_timestamp|clock_timestamp\(\))\s*-\s*([a-zA-Z_][\w.]*)", r"elapsed(\1)"),
    (r"\binterval\s+(\x01\d+\x01)", r"interval(\1)"),
    (r"\bcurrent_timestamp\b(?!\s*_)", "now()"),
    (r"\blocaltimestamp\b", "now()"),
    (r"\b(current_user|session_user|current_database|current_schema)\b(?!\s*\()", r"\1()"),
    (r"(\b[\w.]+)\s*=\s*ANY\s*\(\s*pg_blocking_pids\(([^()]*)\)\s*\)", r"is_blocked_by(\2, \1)"),
    (r"\bcardinality\s*\(", "cardinality("),
    (r"\barray_length\s*\(([^,]*),\s*1\s*\)", r"cardinality(\1)"),
    (r"\b(left|right)\s*\(", r"\1_("),
    (r"\bILIKE\b", "LIKE"),
    (r"\bFOR\s+(?:NO\s+KEY\s+)?(?:UPDATE|SHARE)(?:\s+(?:NOWAIT|SKIP\s+LOCKED))?\s*$", ""),
    (r"\bpg_catalog\.(?=pg_\w+\()", ""),
    (r"\bpublic\.", "main."),
    (r"\bstring_agg\s*\(", "group_concat("),
    (r"!~~?", " NOT LIKE "),
)
_TABLE_REWRITES: tuple[tuple[str, str], ...] = (
    (r"\b(?:BIG|SMALL)?SERIAL\s+PRIMARY\s+KEY", "INTEGER PRIMARY KEY"),
    (
        r"\b(?:INT|INTEGER|BIGINT)\s+GENERATED\s+(?:ALWAYS|BY\s+DEFAULT)\s+AS\s+IDENTITY\s*(?:\([^)]*\))?\s*PRIMARY\s+KEY",
        "INTEGER PRIMARY KEY",
    ),
    (r"\bGENERATED\s+(?:ALWAYS|BY\s+DEFAULT)\s+AS\s+IDENTITY\s*(?:\([^)]*\))?", ""),
    (r"\b(?:BIG|SMALL)?SERIAL\b", "INTEGER"),
    (r"(\w)\[\]", r"\1"),
    (r"\bDEFAULT\s+((?:now|gen_random_uuid|uuid_generate_v4)\(\))", r"DEFAULT (\1)"),
    (r"\bREFERENCES\s+\w+\.", "REFERENCES "),
    (r"\bON\s+(?:DELETE|UPDATE)\s+(?:CASCADE|RESTRICT|NO\s+ACTION|SET\s+NULL)", ""),
    (r"\bUNLOGGED\s+TABLE", "TABLE"),
)
_INDEX = re.compile(
    r"CREATE\s+(UNIQUE\s+)?INDEX\s+(?:CONCURRENTLY\s+)?(IF\s+NOT\s+EXISTS\s+)?(\w+)\s+ON\s+(?:ONLY\s+)?(?:(\w+)\.)?(\"?\w+\"?)"
    r"\s*(?:USING\s+\w+\s*)?(\(.*\))",
    re.IGNORECASE | re.DOTALL,
)


def translated(statement: str) -> str:
    """The statement for SQLite; string literals stay as they are."""
    text, literals = masked(statement)
    literals = [f"'{item[2:]}" if item[:1] in "eE" else item for item in literals]
    rewrites = _REWRITES
    if re.match(r"\s*CREATE\s", text, re.IGNORECASE):
        rewrites = (*_REWRITES, *_TABLE_REWRITES)
    elif re.match(r"\s*TRUNCATE\s", text, re.IGNORECASE):
        text = re.sub(r"\s*TRUNCATE\s+(?:TABLE\s+)?(?:ONLY\s+)?", "DELETE FROM ", text, flags=re.IGNORECASE)
        text = re.sub(r"\s+(?:RESTART\s+IDENTITY|CASCADE|RESTRICT)", "", text, flags=re.IGNORECASE)
    for pattern, replacement in rewrites:
        text = re.sub(pattern, replacement, text, flags=re.IGNORECASE)
    index = _INDEX.match(text)
    if index is not None:
        unique, absent, name, schema, table, columns = index.groups()
        place = f"{schema or 'main'}.{name}".replace("public.", "main.")
        text = f"CREATE {unique or ''}INDEX {absent or ''}{place} ON {table} {columns}"
    text = re.sub(r"(\bDROP\s+TABLE\b.*?)\s+(?:CASCADE|RESTRICT)\s*$", r"\1", text, flags=re.IGNORECASE)
    # After a dot any word is a name, also one that SQLite would take for a keyword.
    text = re.sub(r'(?<=[A-Za-z0-9_"])\.([A-Za-z_]\w*)\b(?!\()', r'."\1"', text)
    return unmasked(text, literals)
