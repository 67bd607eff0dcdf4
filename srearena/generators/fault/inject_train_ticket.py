"""Faults behind the feature flags of Train Ticket, whose names reveal nothing.

Flags without effect are set along with the faulty one, so that the change itself does not identify it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from srearena.generators.fault.edits import CompositeFault, Edit, ReplacePods
from srearena.generators.fault.errors import FaultError
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.steps import selector_of
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

CONFIG_MAP, KEY = "flagd-config", "flags.yaml"
_WITHOUT_EFFECT = (2, 3, 5, 8, 9, 11, 14, 16, 19, 20)


def enable_flags(flags: Iterable[str]) -> Callable[[Obj], None]:
    """The edit of the config map that enables flags and leaves the rest of its text unchanged."""

    def change(obj: Obj) -> None:
        text = obj["data"][KEY]
        for flag in flags:
            text, count = re.subn(
                rf"(^ *{re.escape(flag)}:\n(?:.*\n)*?^ *defaultVariant: )\S+$", r"\1'on'", text, count=1, flags=re.M
            )
            if not count:
                raise FaultError(f"{CONFIG_MAP} has no flag {flag!r}")
        obj["data"][KEY] = text

    return change


def _enable(bed: Testbed, flag: str) -> Fault:
    flags = (flag, *(f"tt-feat-{number:02}" for number in _WITHOUT_EFFECT))
    return CompositeFault(
        Edit(bed, "configmaps", CONFIG_MAP, enable_flags(flags)), ReplacePods(bed, selector_of(bed, "flagd"))
    )


@fault("tt-feat-17")
def slow_vouchers(bed: Testbed, service: str) -> Fault:
    """The voucher service runs a query of ten seconds, one request at a time."""
    return _enable(bed, "tt-feat-17")


@fault("tt-feat-22")
def wrong_column(bed: Testbed, service: str) -> Fault:
    """The contacts service queries a column that its table does not have."""
    return _enable(bed, "tt-feat-22")
