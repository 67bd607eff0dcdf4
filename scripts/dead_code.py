"""Report code that nothing uses, found by vulture.

A name that only tests use counts as unused. Not reported are names that are used in ways vulture cannot see:
entry points of `pyproject.toml`, functions and classes that a decorator registers, classes that a base class
registers, and fields of data classes, which are serialised. Every other exception is a line `name: reason` in
`dead_code_allowed.txt`; a line that is no longer needed is an error, too.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (
    "clients",
    "itbench_evaluations",
    "itbench_leaderboard",
    "sre_tools",
    "srearena",
    "website",
    "zero",
)
ALLOWED = Path(__file__).with_name("dead_code_allowed.txt")
REGISTERING_DECORATORS = (
    "@_*",
    "@adapter",
    "@agent",
    "@builtin",
    "@command",
    "@click.*",
    "@consumes",
    "@data_set",
    "@*.command",
    "@fault",
    "@field_validator",
    "@handles",
    "@load_sample",
    "@model_validator",
    "@overload",
    "@per_cluster",
    "@problem",
    "@program",
    "@runbook",
    "@tool",
)
REGISTERING_BASES = frozenset({"Application", "Controller"})
NAME_PATTERNS = (
    "do_*",  # methods of http.server handlers and of the MongoDB shell's objects, called by name
    "_eval_*",  # the MongoDB shell's evaluator, called by the kind of a syntax node
)


def entry_points() -> frozenset[str]:
    """Return the names of objects that `pyproject.toml` declares as scripts or entry points."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tables = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    return frozenset(target.rpartition(":")[2].rpartition(".")[2] for table in tables for target in table.values())


def declared(files: list[Path]) -> set[str]:
    """Return the fields of classes, and the classes that a direct or indirect base class registers."""
    classes = [
        node for path in files for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
    ]
    fields = {
        statement.target.id
        for node in classes
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }
    bases = {node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases} for node in classes}
    registered = set(REGISTERING_BASES)
    while more := {name for name, above in bases.items() if above & registered} - registered:
        registered |= more
    return fields | registered


def allowed() -> dict[str, str]:
    """Return the reasons for exceptions, by name."""
    lines = [line for line in ALLOWED.read_text().splitlines() if line and not line.startswith("#")]
    return {name: reason.strip() for name, _, reason in (line.partition(":") for line in lines)}


def main() -> int:
    files = [path for source in SOURCES for path in sorted(ROOT.joinpath(source).rglob("*.py"))]
    vulture = Vulture(ignore_names=NAME_PATTERNS, ignore_decorators=REGISTERING_DECORATORS)
    vulture.scavenge([str(path) for path in files])
    used = entry_points() | declared(files)
    unused = [item for item in vulture.get_unused_code(min_confidence=60) if item.name not in used]
    exceptions = allowed()
    complaints = [
        f"{Path(item.filename).relative_to(ROOT)}:{item.first_lineno}: {item.message}"
        for item in unused
        if item.name not in exceptions
    ]
    stale = exceptions.keys() - {item.name for item in unused}
    complaints += [f"{ALLOWED.name}: {name} is used or gone: remove the line" for name in sorted(stale)]
    complaints += [f"{ALLOWED.name}: {name} needs a reason" for name, reason in exceptions.items() if not reason]
    print(*complaints, sep="\n", end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
