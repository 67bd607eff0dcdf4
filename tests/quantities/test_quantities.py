"""Quantities are exact, keep their family of suffix, and are written back as an API server writes them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded import quantity
from srearena.cluster.embedded.quantity import Format, Quantity, QuantityError, canonical, milli, parse, units


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("100m", "100m"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("0.1", "100m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1e3", "1e3"),
        ("12e4", "120e3"),
        ("1E", "1E"),
        ("12E", "12E"),
        ("2000Mi", "2000Mi"),
        ("16384Mi", "16Gi"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("1000Ki", "1000Ki"),
        ("1500000000", "1500M"),
        ("128974848", "128974848"),
        ("3.2Gi", "3435973836800m"),
        ("0.5Mi", "512Ki"),
        ("0.001", "1m"),
        ("0.0000000001", "1n"),
        ("-1.5", "-1500m"),
        ("0Mi", "0"),
        (" 64Mi ", "64Mi"),
        (2, "2"),
        (0.5, "500m"),
        (1e21, "1e+21"),
        ("10Ei", "9223372036854775807"),
    ],
)
def test_a_quantity_is_written_back_in_canonical_form(written: object, stored: str) -> None:
    assert canonical(written) == stored


def test_text_already_in_canonical_shape_keeps_its_own_zeros() -> None:
    assert canonical("1.500") == "1.500"
    assert str(parse("1.500") + quantity.ZERO) == "1500m"


@pytest.mark.parametrize("wrong", ["", "abc", "1.1.M", "1 Mi", "1+1.0M", "0.1am", "1,5", "५", "1Mi\x00", True, [], {}])
def test_text_of_another_shape_is_refused_with_the_regular_expression(wrong: object) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(wrong)
    assert str(caught.value) == (
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )


@pytest.mark.parametrize("wrong", ["1i", "1mi", "1e", "1K", "100MM", "-3.01e-", "1Mi3"])
def test_an_unknown_suffix_is_refused(wrong: str) -> None:
    with pytest.raises(QuantityError, match="unable to parse quantity's suffix"):
        parse(wrong)


def test_whole_units_and_thousandths_are_rounded_up() -> None:
    assert (units("100m"), units("1001m"), units("1.5Gi")) == (1, 2, 1610612736)
    assert (milli("0.25"), milli("1u"), milli("2"), milli(None)) == (250, 1, 2000, 0)
    assert (units("-100m"), parse("1Gi").scaled_value(6), parse("1").scaled_value(-12)) == (-1, 1074, 10**12)


def test_a_sum_takes_the_family_of_its_first_nonzero_part() -> None:
    assert str(parse("1Gi") + parse("24M")) == "1097741824"
    assert str(quantity.ZERO + parse("512Mi")) == "512Mi"
    assert str(quantity.total(["0", "512Mi", "512Mi"])) == "1Gi"
    assert str(parse("0") - parse("1Gi")) == "-1Gi"
    assert quantity.add_resources({"cpu": parse("1")}, {"cpu": parse("500m"), "memory": parse("1Mi")}) == {
        "cpu": parse("1500m"),
        "memory": parse("1Mi"),
    }


def test_amounts_compare_across_families() -> None:
    assert parse("1024Mi") == parse("1Gi") == parse("1073741824")
    assert parse("1M") < parse("1Mi") <= parse("1048576")
    assert parse("1Gi") > parse("1G") >= parse("1e9")
    assert hash(parse("1000m")) == hash(parse("1"))
    assert not parse("0") and parse("1n")


def test_hostile_sizes_are_refused_or_bounded() -> None:
    for text in ("9" * 5000, "1e999999999", "1e" + "9" * 400):
        with pytest.raises(quantity.QuantityError):
            quantity.parse(text)
    assert canonical("1e-999999999") == "1e-9"


SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "e3": Fraction(10**3),
    "E-3": Fraction(1, 1000),
}


@given(
    st.integers(-(10**6), 10**6),
    st.integers(0, 999),
    st.sampled_from(sorted(SUFFIXES)),
)
def test_the_amount_is_the_number_times_the_suffix(whole: int, fraction: int, suffix: str) -> None:
    exact = (Fraction(abs(whole)) + Fraction(fraction, 1000)) * SUFFIXES[suffix] * 10**9
    found = parse(f"{whole}.{fraction:03}{suffix}").nano
    rounded_up = -(-exact.numerator // exact.denominator)
    assert found == (rounded_up if whole >= 0 else -rounded_up)


@given(st.integers(-(10**30), 10**30), st.sampled_from(list(Format)))
def test_what_is_written_reads_back_as_the_same_amount(nano: int, format: Format) -> None:
    if format is Format.BINARY_SI:
        nano %= 2**63 * 10**9
    text = str(Quantity(nano, format))
    again = parse(text)
    assert again.nano == nano
    assert str(Quantity(again.nano, again.format)) == text


@given(st.text(alphabet="0123456789.eEinumkKMGTP+-", max_size=12))
def test_any_text_is_either_a_quantity_or_a_quantity_error(text: str) -> None:
    try:
        amount = parse(text)
    except QuantityError as error:
        assert str(error) in {quantity.FORMAT_WRONG, quantity.NUMERIC_WRONG, quantity.SUFFIX_WRONG}
    else:
        assert parse(str(amount)) == amount


@given(st.integers(-(10**20), 10**20), st.integers(-(10**20), 10**20))
def test_sums_and_differences_undo_each_other(left: int, right: int) -> None:
    a, b = Quantity(left), Quantity(right)
    assert a + b - b == a
    assert (a < b) == (left < right)
    assert a + -a == Quantity(0)
    assert a * 3 == a + a + a
