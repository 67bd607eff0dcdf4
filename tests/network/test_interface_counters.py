"""Counters of an interface: single transfers, and exchanges at a steady rate."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.machine.networking.interface_counters import Carried, Exchange

RATES = st.builds(Exchange, *[st.floats(0, 1e4)] * 4)


def test_a_steady_exchange_counts_from_its_beginning_to_its_end() -> None:
    carried = Carried()
    carried.add(10, 1, 20, 2)
    carried.set_steady("probe", Exchange(100.0, 1.0, 50.0, 0.5), 1000.0)
    assert carried.totals(1000.0)[:4] == (10, 1, 20, 2)
    assert carried.totals(1010.0)[:4] == (1010, 11, 520, 7)
    carried.set_steady("probe", None, 1010.0)
    assert carried.totals(9999.0)[:4] == (1010, 11, 520, 7)


@given(st.lists(st.tuples(st.floats(0.1, 100), st.sampled_from("ab"), st.none() | RATES), max_size=8))
def test_counters_never_decrease(changes: list[tuple[float, str, Exchange | None]]) -> None:
    carried, now = Carried(), 1.8e9
    before = carried.totals(now)
    for passed, key, rate in changes:
        now += passed
        assert all(one <= other + 1e-6 for one, other in zip(before, carried.totals(now), strict=True))
        before = carried.totals(now)
        carried.set_steady(key, rate, now)
        before = carried.totals(now)


def test_the_other_end_of_a_connection_sends_what_this_one_receives() -> None:
    one = Exchange.of_connection(142, 214)
    assert one.received_bytes > 142 and one.sent_bytes > 214
    assert (one.reversed.sent_bytes, one.reversed.received_packets) == (one.received_bytes, one.sent_packets)
    assert one.times(2).received_bytes == 2 * one.received_bytes
