"""Modes of the kubectl tools: which commands are allowed, and how safe mode previews a change.

| mode | allowed |
| read-only | commands that only read; nothing is executed in pods |
| safe | changes too, after a server-side dry run (`--dry-run=server`) and with the objects saved for a rollback |
| full | every command that may run on this machine |

No mode gives access to a terminal, to files of this machine or to other identities (`kubectl_policy`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sre_tools.errors import ToolError
from srearena.conductor.actions import kubectl_policy
from srearena.conductor.actions.kubectl_command import Argument, KubectlCommand

MODES = ("read-only", "safe", "full")
_READ_VERBS = frozenset(
    """api-resources api-versions cluster-info describe diff events explain get help logs options top version wait
    rollout/status rollout/history auth/can-i auth/whoami apply/view-last-applied""".split()
)
_LIST_VERBS = frozenset("annotate label set/env".split())
"""Verbs that only read when given `--list`."""
_PREVIEWED_BY_DRY_RUN = frozenset(
    "annotate apply autoscale create expose label patch replace run scale set taint".split()
)
"""Verbs whose dry run prints the objects they would change."""
_PREVIEWED_BY_GET = frozenset("certificate cordon delete drain rollout uncordon".split())
"""Verbs that change the objects that `kubectl get` prints for the same arguments."""
_DRY_RUN_VERBS = _PREVIEWED_BY_DRY_RUN | frozenset("cordon delete drain rollout/undo uncordon".split())
"""Verbs with a server-side dry run. `certificate`, `debug`, `exec` and the other verbs of `rollout` have none."""
_PREVIEWED_BY_CLIENT = frozenset(("auth/reconcile",))
"""Verbs with a client-side dry run only."""
_WITHOUT_OBJECT = frozenset(("create/token",))
_NODE_VERBS = frozenset("cordon drain uncordon".split())
_GET_FLAGS = frozenset(
    """namespace selector field-selector filename recursive all-namespaces as as-group as-uid request-timeout
    v""".split()
)
_DRY_RUN_VALUES = frozenset((None, "client", "server", "true"))
_OUTPUT_FLAGS = frozenset("output template dry-run show-managed-fields allow-missing-template-keys".split())
_DELETE_FLAGS = frozenset("cascade force grace-period save-config timeout wait".split())
_ATTACH_FLAGS = frozenset("attach stdin rm quiet leave-stdin-open pod-running-timeout".split())


def parse(words: Sequence[str]) -> KubectlCommand:
    """Parse a command; BadAction if it may not run on this machine in any mode."""
    return kubectl_policy.checked(words)


def _in(line: KubectlCommand, table: frozenset[str]) -> bool:
    if f"{line.verb}/{line.subcommand}" in _WITHOUT_OBJECT:
        return False
    return line.verb in table or f"{line.verb}/{line.subcommand}" in table


def reads(line: KubectlCommand) -> bool:
    """Whether the command changes nothing in the cluster."""
    if line.has("help"):
        return True
    if _in(line, _READ_VERBS):
        return True
    if line.values("raw"):
        return False  # kubectl ignores --dry-run with --raw
    if line.has("local") or (line.has("list") and _in(line, _LIST_VERBS)):
        return True
    dry = line.values("dry-run")
    return bool(dry) and dry[-1] in _DRY_RUN_VALUES and _in(line, _DRY_RUN_VERBS | _PREVIEWED_BY_CLIENT)


def allow(line: KubectlCommand, mode: str) -> None:
    """ToolError if the mode does not allow the command."""
    if mode == "full" or reads(line):
        return
    if mode == "read-only":
        name = f"kubectl {line.verb} {line.subcommand}".rstrip()
        raise ToolError(f"`{name}` changes something, and this server only reads")
    if line.values("raw"):
        raise ToolError("--raw cannot be tried and put back: name the objects instead (`kubectl delete KIND NAME`)")


def preview(line: KubectlCommand) -> list[str] | None:
    """A read-only command that prints, as JSON, the objects a command would change; None if there is none."""
    if _in(line, _PREVIEWED_BY_DRY_RUN):
        return _dry_run(line, ("--dry-run=server", "--output=json"))
    if _in(line, _PREVIEWED_BY_CLIENT):
        return _dry_run(line, ("--dry-run=client", "--output=json"))
    if _in(line, _PREVIEWED_BY_GET):
        words = [piece.word for piece in line.arguments if not piece.flag or piece.flag in _GET_FLAGS]
        kind = {"certificate": ["certificatesigningrequests"]}.get(
            line.verb, ["nodes"] if line.verb in _NODE_VERBS else []
        )
        return ["get", *kind, *words, "--ignore-not-found", "--output=json", *line.remote]
    return None


def trial(line: KubectlCommand) -> list[str] | None:
    """The command as a server-side dry run; None for verbs without one."""
    return _dry_run(line, ("--dry-run=server",)) if _in(line, _DRY_RUN_VERBS) else None


def _dry_run(line: KubectlCommand, more: Sequence[str]) -> list[str]:
    """The command without the flags that conflict with a dry run, plus `more`."""
    excluded = set(_OUTPUT_FLAGS)
    if line.verb == "run":
        excluded |= _ATTACH_FLAGS
    if line.verb == "replace" and line.has("force"):
        # `replace --force` deletes first and has no dry run; it creates the same objects as `apply`.
        excluded |= _DELETE_FLAGS
        line = replace(line, verb="apply")

    def keep(piece: Argument) -> bool:
        return piece.flag not in excluded

    return line.rewritten(keep, more)
