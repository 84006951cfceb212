"""The laws of dividing shards among members, and of handing them over."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.sharing import EVERYWHERE, Assignment, View, by_namespace, everywhere, owner_of
from tests.support.cases import cases

NAMES = st.frozensets(st.sampled_from("abcdefgh"), min_size=1)
SHARDS = [f"cluster/member{number}" for number in range(200)]


@given(members=NAMES, shard=st.text())
def test_everyone_who_knows_the_same_members_finds_the_same_owner(members: View, shard: str) -> None:
    owner = owner_of(shard, members)
    assert owner in members
    assert owner == owner_of(shard, sorted(members)) == owner_of(shard, sorted(members, reverse=True))


@given(members=NAMES, joining=st.sampled_from("xyz"))
def test_a_member_that_joins_or_leaves_moves_only_what_it_gains_or_had(members: View, joining: str) -> None:
    more = members | {joining}
    for shard in SHARDS[:40]:
        before, after = owner_of(shard, members), owner_of(shard, more)
        assert after in (before, joining)


@cases(2, 3, 5)
def test_shards_are_spread_evenly(count: int) -> None:
    members = [f"karmada-worker-{number}-x7f2q" for number in range(count)]
    shares = Counter(owner_of(f"namespace/team-{number}", members) for number in range(2000))
    assert all(0.8 < shares[member] * count / 2000 < 1.2 for member in members)


def test_nobody_owns_a_shard_of_no_members() -> None:
    assert owner_of("namespace/web", ()) == ""
    assert not Assignment("a").owns("namespace/web")
    assert Assignment("a").owns(EVERYWHERE)


@cases(
    (by_namespace(Key("web", "shop")), "namespace/web"),
    (by_namespace(Key("", "global")), "namespace/"),
    (everywhere(Key("web", "shop")), EVERYWHERE),
)
def test_shards_of_keys(shard: str, expected: str) -> None:
    assert shard == expected


def test_what_the_next_view_takes_away_is_not_owned_any_more() -> None:
    both = frozenset({"a", "b"})
    lost = next(shard for shard in SHARDS if owner_of(shard, both) == "b")
    assert Assignment("a", frozenset({"a"})).owns(lost)
    assert not Assignment("a", frozenset({"a"}), until=both).owns(lost)


def test_a_shard_that_another_still_claims_is_not_started() -> None:
    both = frozenset({"a", "b"})
    gained = next(shard for shard in SHARDS if owner_of(shard, both) == "b")
    assert not Assignment("b", both, claims={"a": frozenset({"a"})}).owns(gained)
    assert Assignment("b", both, claims={"a": both, "b": both}).owns(gained)


@given(st.data())
def test_more_can_only_be_owned_by_another_view_or_fewer_claims(data: st.DataObject) -> None:
    claims = st.dictionaries(st.sampled_from("bcd"), NAMES)
    views = st.tuples(NAMES, claims, st.none() | NAMES)
    (view, claimed, until), (next_view, next_claimed, next_until) = data.draw(views), data.draw(views)
    before = Assignment("a", view, until=until, claims=claimed)
    now = Assignment("a", next_view, until=next_until, claims=next_claimed)
    if not now.may_own_more_than(before):
        assert not [shard for shard in SHARDS[:40] if now.owns(shard) and not before.owns(shard)]


class Replica:
    """The steps of a member, in the order that membership takes them, each at any moment."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.published: View = frozenset()
        self.view: View = frozenset()
        self.until: View | None = None
        self.claims: dict[str, View] = {}

    def owned(self) -> set[str]:
        now = Assignment(self.name, self.view, until=self.until, claims=self.claims)
        return {shard for shard in SHARDS[:30] if now.owns(shard)}

    def step(self, others: dict[str, Replica]) -> None:
        if self.until is None:
            self.until = frozenset(others)  # what it loses has stopped before the next step
        elif self.published != self.until:
            self.published = self.until
        else:
            self.view, self.until = self.published, None
            self.see(others)

    def see(self, others: dict[str, Replica]) -> None:
        self.claims = {name: replica.published for name, replica in others.items()}


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["step", "see", "join", "leave"])), max_size=60))
def test_no_shard_has_two_owners_whenever_members_join_leave_and_look(history: list[tuple[str, str]]) -> None:
    group: dict[str, Replica] = {}
    for name, act in history:
        if act == "join":
            group.setdefault(name, Replica(name))
        elif act == "leave":
            group.pop(name, None)
        elif name in group:
            group[name].step(group) if act == "step" else group[name].see(group)
        owned = [shard for replica in group.values() for shard in replica.owned()]
        assert len(owned) == len(set(owned))
    for _ in range(6):  # once nothing changes any more, everything has an owner
        for replica in group.values():
            replica.step(group)
    for replica in group.values():
        replica.see(group)
    while any(replica.until is not None for replica in group.values()):
        for replica in group.values():
            if replica.until is not None:
                replica.step(group)
    for replica in group.values():
        replica.see(group)
    if group:
        assert set().union(*(replica.owned() for replica in group.values())) == set(SHARDS[:30])
