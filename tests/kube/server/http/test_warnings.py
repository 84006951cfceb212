"""Warnings of a response: each once, and bounded."""

from __future__ import annotations

from karmada.kube.server.http.warnings import Warnings


def collected(*texts: str) -> Warnings:
    found = Warnings()
    for text in texts:
        found.append(text)
    return found


def test_a_text_is_kept_once() -> None:
    assert collected("a", "b", "a", "") == ["a", "b"]


def test_up_to_4096_characters_everything_is_shown() -> None:
    long = "x" * 4000
    assert collected(long, "y" * 96) == [long, "y" * 96]


def test_beyond_that_texts_are_cut() -> None:
    assert collected("x" * 4000, "y" * 400) == ["x" * 256, "y" * 256]


def test_what_exceeds_the_limit_all_the_same_is_left_out() -> None:
    found = collected(*(f"unknown field {number}" for number in range(200_000)))
    assert sum(map(len, found)) <= 4096
    assert found[0] == "unknown field 0"
    assert len(found) < 300


def test_headers_are_quoted_and_printable() -> None:
    assert collected('a"b\\c\nd').headers() == ['299 - "a\\"b\\\\cd"']
