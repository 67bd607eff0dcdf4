"""What a write asks for beside its object: a dry run, a field manager, how strictly to read unknown fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import FieldError, Invalid
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.registry.registry import WriteOptions

VALIDATIONS: Final = ("Ignore", "Strict", "Warn")
_MANAGER_LIMIT: Final = 128


@dataclass(slots=True)
class WriteWish:
    """The options of one write, checked."""

    user: User
    manager: str
    dry_run: bool
    validation: str
    warnings: list[str] = field(default_factory=list)

    def options(self, operation: str = "Update") -> WriteOptions:
        return WriteOptions(self.user, self.manager, self.dry_run, operation, self.warnings)


def write_wish(request: Request, kind: str) -> WriteWish:
    """Read from the query; `kind` is that of the options object, for the words of a refusal."""
    query = request.query
    problems = _dry_run_errors(query.all("dryRun"))
    manager = query.text("fieldManager")
    if len(manager.encode()) > _MANAGER_LIMIT:
        problems.append(FieldError.too_long("fieldManager", _MANAGER_LIMIT))
    for position, char in enumerate(manager):
        if not char.isprintable():
            what = f"should only contain printable characters; invalid character at position {position}"
            problems.append(FieldError.invalid("fieldManager", manager, what))
            break
    validation = query.text("fieldValidation")
    if validation and validation not in VALIDATIONS:
        problems.append(FieldError.not_supported("fieldValidation", validation, ("", *VALIDATIONS)))
    if problems:
        raise Invalid(f"{kind}.meta.k8s.io", "", problems)
    return WriteWish(
        request.user,
        manager or manager_of(request.header("user-agent")),
        bool(query.all("dryRun")),
        validation or "Warn",
        request.warnings,
    )


def manager_of(user_agent: str) -> str:
    """The default field manager: the program name of the User-Agent header."""
    program = user_agent.partition("/")[0][:_MANAGER_LIMIT]
    return "".join(char for char in program if char.isprintable()) or "unknown"


def _dry_run_errors(values: list[str]) -> list[FieldError]:
    if values and set(values) != {"All"}:
        return [FieldError.not_supported("dryRun", values, ("All",))]
    return []


def delete_wish(request: Request, body: Obj | None) -> Obj:
    """DeleteOptions from the body, or else from the query."""
    if body is not None:
        return checked_delete_options(body)
    query = request.query
    wish: Obj = {}
    seconds = query.number("gracePeriodSeconds")
    if seconds is not None:
        wish["gracePeriodSeconds"] = seconds
    if query.text("propagationPolicy"):
        wish["propagationPolicy"] = query.text("propagationPolicy")
    if query.has("orphanDependents"):
        wish["orphanDependents"] = query.flag("orphanDependents")
    return wish


def checked_delete_options(options: Obj) -> Obj:
    """DeleteOptions given as an object, whose types are right already."""
    if problems := _dry_run_errors(options.get("dryRun") or []):
        raise Invalid("DeleteOptions.meta.k8s.io", "", problems)
    fields = ("gracePeriodSeconds", "propagationPolicy", "orphanDependents", "preconditions", "dryRun")
    return {key: options[key] for key in fields if key in options}
