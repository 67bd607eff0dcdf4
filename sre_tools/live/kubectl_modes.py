"""Which kubectl commands a mode allows, and how a command that changes something is tried and remembered first.

| mode | what runs |
| read-only | what only reads; nothing is executed in pods |
| safe | changes too: tried by the server first (`--dry-run=server`), the objects saved, so that they can be put back |
| full | whatever may run on this machine at all |

In every mode there is no terminal, no file of this machine and no other identity (`kubectl_words`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sre_tools.errors import ToolError
from srearena.conductor.actions import kubectl_words
from srearena.conductor.actions.kubectl_line import KubectlLine, Piece

MODES = ("read-only", "safe", "full")
_READING = frozenset(
    """api-resources api-versions cluster-info describe diff events explain get help logs options top version wait
    rollout/status rollout/history auth/can-i auth/whoami apply/view-last-applied""".split()
)
_LISTING = frozenset("annotate label set/env".split())
"""What only shows, if it is asked to with `--list`, whatever else it is told."""
_SHOWN_BY_DRY_RUN = frozenset("annotate apply autoscale create expose label patch replace run scale set taint".split())
"""What prints, in a dry run, the objects it would touch."""
_SHOWN_BY_GET = frozenset("certificate cordon delete drain rollout uncordon".split())
"""What touches the objects that `kubectl get` shows when it is asked with the same words."""
_TRIED = _SHOWN_BY_DRY_RUN | frozenset("cordon delete drain rollout/undo uncordon".split())
"""What the server tries without effect. `certificate`, `debug`, `exec` and the rest of `rollout` cannot be tried."""
_SHOWN_BY_CLIENT = frozenset(("auth/reconcile",))
"""What has a dry run in the client only."""
_MAKES_NO_OBJECT = frozenset(("create/token",))
_NODES = frozenset("cordon drain uncordon".split())
_SAME_TO_GET = frozenset(
    """namespace selector field-selector filename recursive all-namespaces as as-group as-uid request-timeout
    v""".split()
)
_IS_DRY = frozenset((None, "client", "server", "true"))
_ABOUT_PRINTING = frozenset("output template dry-run show-managed-fields allow-missing-template-keys".split())
_ABOUT_DELETING = frozenset("cascade force grace-period save-config timeout wait".split())
_ABOUT_ATTACHING = frozenset("attach stdin rm quiet leave-stdin-open pod-running-timeout".split())


def parse(words: Sequence[str]) -> KubectlLine:
    """The line, if it may run on this machine at all; BadAction says why not."""
    return kubectl_words.checked(words)


def _in(line: KubectlLine, table: frozenset[str]) -> bool:
    if f"{line.verb}/{line.part}" in _MAKES_NO_OBJECT:
        return False
    return line.verb in table or f"{line.verb}/{line.part}" in table


def reads(line: KubectlLine) -> bool:
    """It changes nothing in the cluster."""
    if line.has("help"):
        return True
    if _in(line, _READING):
        return True
    if line.values("raw"):
        return False  # sent as it is, dry run or not
    if line.has("local") or (line.has("list") and _in(line, _LISTING)):
        return True
    dry = line.values("dry-run")
    return bool(dry) and dry[-1] in _IS_DRY and _in(line, _TRIED | _SHOWN_BY_CLIENT)


def allow(line: KubectlLine, mode: str) -> None:
    """ToolError where the mode does not allow the line."""
    if mode == "full" or reads(line):
        return
    if mode == "read-only":
        name = f"kubectl {line.verb} {line.part}".rstrip()
        raise ToolError(f"`{name}` changes something, and this server only reads")
    if line.values("raw"):
        raise ToolError("--raw cannot be tried and put back: name the objects instead (`kubectl delete KIND NAME`)")


def preview(line: KubectlLine) -> list[str] | None:
    """A command that shows, as JSON, the objects that a line would touch, and changes nothing; None where none can."""
    if _in(line, _SHOWN_BY_DRY_RUN):
        return _rehearsed(line, ("--dry-run=server", "--output=json"))
    if _in(line, _SHOWN_BY_CLIENT):
        return _rehearsed(line, ("--dry-run=client", "--output=json"))
    if _in(line, _SHOWN_BY_GET):
        kept = [piece.word for piece in line.pieces if not piece.flag or piece.flag in _SAME_TO_GET]
        kind = {"certificate": ["certificatesigningrequests"]}.get(line.verb, ["nodes"] if line.verb in _NODES else [])
        return ["get", *kind, *kept, "--ignore-not-found", "--output=json", *line.remote]
    return None


def trial(line: KubectlLine) -> list[str] | None:
    """The line as the server would take it, without effect; None for verbs that cannot be tried."""
    return _rehearsed(line, ("--dry-run=server",)) if _in(line, _TRIED) else None


def _rehearsed(line: KubectlLine, more: Sequence[str]) -> list[str]:
    """The line without what a dry run does not go with."""
    left_out = set(_ABOUT_PRINTING)
    if line.verb == "run":
        left_out |= _ABOUT_ATTACHING
    if line.verb == "replace" and line.has("force"):
        # It deletes first, which has no dry run; what it then makes is what `apply` would.
        left_out |= _ABOUT_DELETING
        line = replace(line, verb="apply")

    def kept(piece: Piece) -> bool:
        return piece.flag not in left_out

    return line.rewritten(kept, more)
