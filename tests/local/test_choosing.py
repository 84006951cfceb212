"""What a start does, from the flags now and those of the last start."""

from __future__ import annotations

import pytest

from karmada.local.choosing import Requested, choose
from karmada.local.folder import ETCD, SQLITE, Choices, Refused
from tests.support.cases import cases

FREE = 40000


def chosen(
    requested: Requested,
    kept: Choices | None = None,
    *,
    has_database: bool = False,
    taken: frozenset[int] = frozenset(),
) -> tuple[Choices, list[str]]:
    return choose(
        requested, kept, has_database=has_database, is_free=lambda port: port not in taken, free_port=lambda: FREE
    )


@cases(
    (None, None, 3),
    (5, None, 5),
    (0, None, 0),
    (None, 5, 5),
    (None, 0, 0),
    (2, 5, 2),
)
def test_the_number_of_members_stays_unless_another_is_requested(
    requested: int | None, kept: int | None, members: int
) -> None:
    before = None if kept is None else Choices(members=kept, port=5443)
    assert chosen(Requested(members=requested), before)[0].members == members


@cases(
    (None, None, {}, 5443),
    (None, 6443, {5443}, 6443),
    (7443, 6443, {6443}, 7443),
    (0, 6443, {}, FREE),
    (None, None, {5443}, FREE),
    (None, 6443, {6443}, FREE),
)
def test_a_port_that_is_taken_gives_way_unless_it_was_requested(
    requested: int | None, kept: int | None, taken: set[int], port: int
) -> None:
    before = None if kept is None else Choices(members=3, port=kept)
    choices, notes = chosen(Requested(port=requested), before, taken=frozenset(taken))
    assert choices.port == port
    assert bool(notes) == (requested is None and port == FREE)


@cases(
    (Requested(), None, {}, 5480),
    (Requested(), 6480, {}, 6480),
    (Requested(), 6480, {6480}, FREE),
    (Requested(port=0), None, {}, FREE),
    (Requested(dashboard=False), 6480, {}, 0),
)
def test_the_dashboard_has_a_port_unless_it_is_not_wanted(
    requested: Requested, kept: int | None, taken: set[int], port: int
) -> None:
    before = None if kept is None else Choices(members=3, port=1, dashboard_port=kept)
    assert chosen(requested, before, taken=frozenset(taken))[0].dashboard_port == port


def test_a_port_that_was_requested_and_is_taken_is_an_error() -> None:
    with pytest.raises(Refused, match="port 6443 is in use"):
        chosen(Requested(port=6443), taken=frozenset({6443}))


@cases(
    (Requested(), None, False, SQLITE),
    (Requested(), None, True, SQLITE),
    (Requested(etcd=True), None, False, ETCD),
    (Requested(), ETCD, False, ETCD),
    (Requested(etcd=True), ETCD, False, ETCD),
    (Requested(etcd_server="http://10.0.0.1:2379"), None, False, "etcd://10.0.0.1:2379"),
    (
        Requested(etcd_server="10.0.0.1:2379,http://10.0.0.2:2379/"),
        None,
        False,
        "etcd://10.0.0.1:2379,10.0.0.2:2379",
    ),
    (Requested(etcd_server="etcd://a:1?cacert=x"), None, False, "etcd://a:1?cacert=x"),
    (Requested(), "etcd://a:1", False, "etcd://a:1"),
    (Requested(etcd_server="http://a:1"), "etcd://a:1", False, "etcd://a:1"),
)
def test_the_store_is_the_one_of_before(
    requested: Requested, kept: str | None, has_database: bool, storage: str
) -> None:
    before = None if kept is None else Choices(members=3, port=5443, storage=kept)
    assert chosen(requested, before, has_database=has_database)[0].storage == storage


@cases(
    (Requested(etcd=True), SQLITE, True, "the state is in SQLite, not in an etcd of its own"),
    (Requested(etcd=True), None, True, "the state is in SQLite"),
    (Requested(etcd=True), "etcd://a:1?key=k", False, "the state is in the etcd at etcd://a:1, not"),
    (Requested(etcd_server="a:1"), ETCD, False, "the state is in an etcd of its own"),
    (Requested(etcd=True, etcd_server="a:1"), None, False, "choose one of them"),
    (Requested(etcd_server="https://a:1"), None, False, "etcd://a:1\\?cacert="),
)
def test_another_store_than_before_is_refused(
    requested: Requested, kept: str | None, has_database: bool, says: str
) -> None:
    before = None if kept is None else Choices(members=3, port=5443, storage=kept)
    with pytest.raises(Refused, match=says):
        chosen(requested, before, has_database=has_database)


def test_an_etcd_keeps_its_ports_as_long_as_they_are_free() -> None:
    before = Choices(members=3, port=5443, storage=ETCD, etcd_ports=(1001, 1002))
    assert chosen(Requested(), before)[0].etcd_ports == (1001, 1002)
    assert chosen(Requested(), before, taken=frozenset({1002}))[0].etcd_ports == (1001, FREE)
    assert chosen(Requested(etcd=True))[0].etcd_ports == (FREE, FREE)
    assert chosen(Requested())[0].etcd_ports == (0, 0)


def test_members_are_numbered_from_one() -> None:
    assert Choices(members=3, port=1).member_names == ["member1", "member2", "member3"]


@cases(
    (Requested(), None, []),
    (Requested(pull_members=1), None, ["member3"]),
    (Requested(members=5, pull_members=2), None, ["member4", "member5"]),
    (Requested(), Choices(members=3, port=1, pull_members=2), ["member2", "member3"]),
    (Requested(members=1), Choices(members=3, port=1, pull_members=2), ["member1"]),
    (Requested(pull_members=0), Choices(members=3, port=1, pull_members=2), []),
    (Requested(members=0), Choices(members=3, port=1, pull_members=2), []),
)
def test_the_last_members_are_in_mode_pull(requested: Requested, kept: Choices | None, pulling: list[str]) -> None:
    choices = chosen(requested, kept)[0]
    assert [name for name in choices.member_names if choices.is_pull(name)] == pulling


def test_no_more_members_pull_than_there_are() -> None:
    with pytest.raises(Refused, match="--pull-members 4: there are 3 members; add --members"):
        chosen(Requested(pull_members=4))
