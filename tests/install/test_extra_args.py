"""Flags that are added to the command line of a component."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.install.extra_args import command_line, joined
from tests.support.cases import cases

USUAL = ["prog", "--a=1", "--b=2", "--c"]


@cases(
    ([], []),
    (["--k=a", "b", "--x"], ["--k=a,b", "--x"]),
    (["--a-b_c9"], ["--a-b_c9"]),
    (["--k="], ["--k="]),
)
def test_flags_that_were_split_at_commas_are_put_together(parts: list[str], flags: list[str]) -> None:
    assert joined(parts) == flags


@cases(
    (["a", "--k"], 'argument "a" is invalid: no preceding --key found'),
    (["--k=1", " --x"], 'argument " --x" is invalid: it has spaces at its start or end'),
    (["--9=1"], "invalid argument: --9=1"),
    (["--"], "invalid argument: --"),
    (["--k 1"], "invalid argument: --k 1"),
)
def test_a_bad_flag_is_named(parts: list[str], message: str) -> None:
    with pytest.raises(ValueError, match="invalid") as error:
        joined(parts)
    assert str(error.value) == message


@cases(
    ([], USUAL),
    (["--b=9"], ["prog", "--a=1", "--c", "--b=9"]),
    (["--z", "--d=1", "--c=x", "--z=2"], ["prog", "--a=1", "--b=2", "--c=x", "--d=1", "--z=2"]),
)
def test_extra_flags_replace_usual_ones_and_stand_behind_them_in_order(extra: list[str], line: list[str]) -> None:
    assert command_line(USUAL, extra) == line


@given(st.lists(st.sampled_from(["--a=x", "--b", "--c=1", "--d", "--e=5"])))
def test_no_flag_is_there_twice(extra: list[str]) -> None:
    names = [flag.partition("=")[0] for flag in command_line(USUAL, extra)[1:]]
    assert len(names) == len(set(names))
    assert set(names) == {"--a", "--b", "--c", *(flag.partition("=")[0] for flag in extra)}
