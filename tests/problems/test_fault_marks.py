"""A problem notes whether its fault is in place."""

from __future__ import annotations

import pytest

from srearena.utils.decorators import mark_fault_injected


class Example:
    fault_injected = False

    @mark_fault_injected
    def inject_fault(self, works: bool = True) -> str:
        """Break it."""
        if not works:
            raise OSError("cannot")
        return "done"

    @mark_fault_injected
    def recover_fault(self) -> None:
        pass


def test_injecting_sets_the_mark_and_recovering_clears_it() -> None:
    one = Example()
    assert one.inject_fault() == "done" and one.fault_injected
    one.recover_fault()
    assert not one.fault_injected
    assert Example.inject_fault.__doc__ == "Break it."


def test_a_fault_that_could_not_be_injected_leaves_no_mark() -> None:
    one = Example()
    with pytest.raises(OSError):
        one.inject_fault(works=False)
    assert not one.fault_injected
