"""Which replica of a group does which part of the work: pure functions of the group's members.

Work is divided into shards, named by strings (`cluster/member1`, `namespace/web`). A shard belongs to the member for
which a hash of the two is highest (rendezvous hashing): all who know the same members agree without a word, shards are
spread evenly, and when a member joins or leaves only those move that it gains or had.

Members learn of each other at different times. So each publishes its *view*, the members by which it works, in an order
that keeps a shard from having two owners whatever the others see (see membership): it stops what a new view takes from
it before it publishes that view, and starts what the view gives to it only when, after that, no other's published view
gives the same shard to that other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Final, TypeAlias

from karmada.kube.runtime.keys import Key

View: TypeAlias = frozenset[str]
"""The names of members."""
EVERYWHERE: Final = ""
"""The shard of what every replica does for itself, such as following discovery; it must write nothing."""


def owner_of(shard: str, members: Collection[str]) -> str:
    """Return the member that a shard belongs to; "" when there are none."""
    return max(members, key=lambda member: (_weight(member, shard), member), default="")


def _weight(member: str, shard: str) -> bytes:
    return blake2b(shard.encode(), key=_key(member), digest_size=8).digest()


@lru_cache(maxsize=1024)
def _key(member: str) -> bytes:
    return blake2b(member.encode(), digest_size=16).digest()


def everywhere(_key: Key) -> str:
    return EVERYWHERE


def by_namespace(key: Key) -> str:
    """Return what is in no namespace is one shard."""
    return f"namespace/{key.namespace}"


def by_controller(name: str) -> str:
    """Return the one shard of a controller whose keys are not divided."""
    return f"controller/{name}"


class Assignment:
    """The work of one member at one moment. Immutable; decisions are kept, since every key needs one."""

    __slots__ = ("_claims", "_decided", "_until", "_view", "me")

    def __init__(
        self,
        me: str,
        view: View = frozenset(),
        *,
        until: View | None = None,
        claims: Mapping[str, View] | None = None,
    ) -> None:
        """`view`: what `me` has published and may start by. `until`: the view that is about to replace it.

        `claims`: what the others have published.
        """
        self.me = me
        self._view = view
        self._until = until
        self._claims = {m: v for m, v in (claims or {}).items() if m != me and v != view}
        self._decided: dict[str, bool] = {EVERYWHERE: True}

    def owns(self, shard: str) -> bool:
        decided = self._decided.get(shard)
        if decided is None:
            decided = self._decided[shard] = self._decide(shard)
        return decided

    def _decide(self, shard: str) -> bool:
        if owner_of(shard, self._view) != self.me:
            return False
        if self._until is not None and owner_of(shard, self._until) != self.me:
            return False
        return not any(owner_of(shard, view) == member for member, view in self._claims.items())

    def narrowed(self, until: View) -> Assignment:
        """Return what is left of it until this view replaces the present one."""
        return Assignment(self.me, self._view, until=until, claims=self._claims)

    def may_own_more_than(self, before: Assignment) -> bool:
        """Return False when no shard can be owned now that was not owned before."""
        same = self._view == before._view and before._until is None
        return not (same and before._claims.items() <= self._claims.items())

    @property
    def shards(self) -> list[str]:
        """Return the shards that were seen so far."""
        return list(self._decided)

    @property
    def owned(self) -> int:
        """Return how many of the shards that were seen so far are this member's."""
        return sum(self._decided.values()) - 1
