from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from karmada.search.proxy.versions import Continue, Versions
from tests.support.cases import cases

TWO = "eyJtZW1iZXIxIjoiMTAwMCIsIm1lbWJlcjIiOiIyMDAwIn0"
ONE = "eyJtZW1iZXIxIjoiMTAwMCJ9"
AT_MEMBER2 = "eyJydiI6ImV5SnRaVzFpWlhJeElqb2lNVEF3TUNJc0ltMWxiV0psY2pJaU9pSXlNREF3SW4wIiwiY2x1c3RlciI6Im1lbWJlcjIifQ"
names = st.text("abcdefghij0123456789-", min_size=1, max_size=10)
versions = st.dictionaries(names, st.integers(1, 2**63).map(str))


@cases(
    ({"member1": "1000", "member2": "2000"}, TWO),
    ({"member2": "2000", "member1": "1000"}, TWO),
    ({"member1": "1000"}, ONE),
    ({}, ""),
)
def test_versions_are_encoded_as_the_base64url_of_a_sorted_map(by_cluster: dict[str, str], text: str) -> None:
    assert Versions(by_cluster).encode() == text
    decoded = Versions.decode(text)
    assert {cluster: decoded.get(cluster) for cluster in by_cluster} == by_cluster


@cases("", "1234", "not base64!", TWO + "=", "W10", "eyJhIjoxfQ", "bnVsbA", "é")
def test_what_is_no_encoded_map_counts_as_no_version(text: str) -> None:
    decoded = Versions.decode(text)
    assert decoded.get("a") == decoded.encode() == ""


def test_any_state_holds_for_all_clusters_until_one_gets_a_version() -> None:
    versions = Versions.decode("0")
    assert versions.get("member1") == versions.get("member2") == versions.encode() == "0"
    versions.set("member1", "0")
    assert versions.encode() == "0"
    versions.set("member1", "1000")
    assert versions.encode() == ONE
    assert versions.get("member2") == ""


def test_a_copy_does_not_change_with_its_original() -> None:
    versions = Versions({"member1": "1000"})
    copy = versions.copy()
    versions.set("member2", "2000")
    assert copy.encode() == ONE
    assert versions.encode() == TWO


@cases((Continue(TWO, "member2"), AT_MEMBER2), (Continue(TWO), ""), (Continue(TWO, "", "inner"), ""))
def test_continue_tokens_are_encoded_only_with_a_cluster(token: Continue, text: str) -> None:
    assert token.encode() == text


@given(versions)
def test_versions_survive_encoding(by_cluster: dict[str, str]) -> None:
    decoded = Versions.decode(Versions(by_cluster).encode())
    assert {cluster: decoded.get(cluster) for cluster in by_cluster} == by_cluster


@given(versions, names, st.text())
def test_continue_tokens_survive_encoding(by_cluster: dict[str, str], cluster: str, inner: str) -> None:
    token = Continue(Versions(by_cluster).encode(), cluster, inner)
    assert Continue.decode(token.encode()) == token


@given(st.text())
def test_no_text_fails_to_decode(text: str) -> None:
    Versions.decode(text).encode()
    Continue.decode(text).encode()


@cases("", "x", "W10", ONE)
def test_an_invalid_token_counts_as_none(text: str) -> None:
    assert Continue.decode(text) == Continue()
