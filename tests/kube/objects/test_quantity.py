"""Quantities: the vectors of Kubernetes, and the laws of exact arithmetic."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from karmada.kube.objects.quantity import ZERO, Format, Quantity, canonical
from tests.support.cases import cases

CANONICAL = [
    ("0", "0"), ("0Gi", "0"), ("-0", "0"), ("1", "1"), ("+1", "1"), ("-1", "-1"), ("007", "7"),
    ("1000m", "1"), ("1500m", "1500m"), ("0.5", "500m"), (".5", "500m"), ("1.", "1"), ("0.1", "100m"), ("1.5", "1500m"),
    ("100", "100"), ("1000", "1k"), ("1500", "1500"), ("1000000", "1M"), ("12345678", "12345678"), ("1k", "1k"),
    ("1000k", "1M"), ("1.5k", "1500"), ("1M", "1M"), ("1G", "1G"), ("1T", "1T"), ("1P", "1P"), ("1E", "1E"),
    ("1n", "1n"), ("1u", "1u"), ("1000n", "1u"), ("0.001m", "1u"), ("0.1n", "1n"), ("-0.1n", "-1n"),
    ("1.0000000001", "1000000001n"),
    ("1Ki", "1Ki"), ("1024", "1024"), ("1024Ki", "1Mi"), ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("0.5Gi", "512Mi"),
    ("0.5Ki", "512"), ("0.1Ki", "102400m"), ("2.5Ki", "2560"), ("1000Ki", "1000Ki"), ("1Ti", "1Ti"), ("1Pi", "1Pi"),
    ("1Ei", "1Ei"),
    ("-1024Mi", "-1Gi"), ("1.0001Ki", "1024102400u"), ("0.0001Ki", "102400u"),
    ("1e3", "1e3"), ("1E3", "1e3"), ("1e+3", "1e3"), ("12e2", "1200"), ("1e-3", "1e-3"), ("1000e3", "1e6"),
    ("1e0", "1"),
    ("123e4", "1230e3"), ("1e-99", "1e-9"), ("0e99", "0"),
    ("8Ei", "9223372036854775807"), ("9999999999999999999", "9223372036854775807"), ("-8Ei", "-9223372036854775807"),
    ("1e99999999999", "9223372036854775807"), (" 1Gi ", "1Gi"),
    (1, "1"), (0.5, "500m"), (1000, "1k"),
]  # fmt: skip


@pytest.mark.parametrize(("given_form", "printed"), CANONICAL)
def test_a_quantity_prints_in_kubernetes_canonical_form(given_form: str | int | float, printed: str) -> None:
    assert canonical(given_form) == printed


FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUFFIX = "unable to parse quantity's suffix"


@cases(
    ("", FORM), ("a", FORM), ("1.2.3", FORM), ("1 Gi", FORM), ("1x", FORM), ("--1", SUFFIX), ("1Gi!", FORM),
    ("١", FORM),
    ("1ki", SUFFIX), ("1KI", FORM), ("1K", SUFFIX), ("1mm", SUFFIX), ("1e", SUFFIX), ("1Mi3", SUFFIX),
    ("1e3k", FORM),
    ("k", "unable to parse numeric part of quantity"), (".", "unable to parse numeric part of quantity"),
    (True, FORM), (None, FORM), ([], FORM), (float("nan"), FORM),
)  # fmt: skip
def test_what_is_no_quantity_is_refused_with_kubernetes_text(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        Quantity.parse(text)
    assert str(caught.value) == message


@cases(
    ("1", 1, 1000), ("1m", 1, 1), ("1n", 1, 1), ("1500m", 2, 1500), ("1Ki", 1024, 1024000),
    ("-1500m", -2, -1500), ("0", 0, 0),
)  # fmt: skip
def test_whole_and_milli_values_round_away_from_zero(text: str, value: int, milli: int) -> None:
    assert (Quantity.parse(text).value(), Quantity.parse(text).milli()) == (value, milli)


def test_a_sum_keeps_the_format_of_its_first_part_that_is_not_zero() -> None:
    assert str(Quantity.parse("1Gi") + Quantity.parse("1024")) == "1048577Ki"
    assert str(ZERO + Quantity.parse("1Gi") + Quantity.parse("1Gi")) == "2Gi"
    assert str(Quantity.parse("1Gi") - Quantity.parse("1Gi")) == "0"


def test_equal_amounts_are_equal_whatever_their_format() -> None:
    assert Quantity.parse("1Ki") == Quantity.parse("1024") == Quantity.parse("1024000m")
    assert len({Quantity.parse("1"), Quantity.parse("1000m"), Quantity.parse("1e0")}) == 1
    assert Quantity.parse("1") != 1


def test_the_order_is_the_order_of_amounts() -> None:
    texts = ["-1Gi", "-1", "0", "1n", "999m", "1", "1k", "1Ki", "1M", "1Mi", "1e9"]
    quantities = [Quantity.parse(text) for text in texts]
    quantities.reverse()
    assert [str(quantity) for quantity in sorted(quantities)] == texts


nanos = st.integers(-(2**63 - 1) * 10**9, (2**63 - 1) * 10**9)
quantities = st.builds(Quantity, nanos, st.sampled_from(Format))
SUFFIXES = {
    "": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "k": Fraction(10**3),
    "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "Ki": Fraction(2**10), "Mi": Fraction(2**20),
    "Gi": Fraction(2**30), "Ti": Fraction(2**40), "e2": Fraction(100), "e-2": Fraction(1, 100),
}  # fmt: skip


@given(quantities)
@example(Quantity(125_000 * 10**9, Format.BINARY_SI))
def test_printing_and_parsing_gives_the_same_amount_and_a_text_that_stays(quantity: Quantity) -> None:
    """A binary amount without a binary suffix is parsed as a decimal one: its text may become shorter, once."""
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(Quantity.parse(str(again))) == str(again)
    assert quantity.format is Format.BINARY_SI or str(again) == str(quantity)


@given(st.decimals(0, 10**6, places=6), st.sampled_from(sorted(SUFFIXES)))
def test_parsing_agrees_with_fractions_rounded_up_to_nano(number: Decimal, suffix: str) -> None:
    exact = Fraction(number) * SUFFIXES[suffix] * 10**9
    assert Quantity.parse(f"{number:f}{suffix}").nano == -(-exact.numerator // exact.denominator)


@given(quantities, quantities, quantities, st.integers(-1000, 1000))
def test_quantities_obey_the_laws_of_addition_and_multiplication(a: Quantity, b: Quantity, c: Quantity, n: int) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + ZERO == a
    assert a - b == a + (-b)
    assert a - a == ZERO
    assert (a + b) * n == a * n + b * n
    assert n * a == a * n
    assert (a < b) == (b > a) == (not a >= b)


@given(quantities)
def test_a_printed_quantity_never_has_more_digits_than_needed(quantity: Quantity) -> None:
    text = str(quantity)
    assert not text.endswith(("000", "000m", "000u", "000n", "000k", "000M", "000G", "000T", "000P"))
