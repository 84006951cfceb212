"""Limits of what one user may have open at the same time, beside the seats that users share."""

from __future__ import annotations

import math
from collections import Counter

from karmada.kube.objects.errors import TooManyRequests
from karmada.kube.server.auth.user import User


class PerUser:
    """Counts what each user has open, up to a limit that does not hold for system:masters."""

    def __init__(self, most: int, what: str, in_all: float = math.inf) -> None:
        """`in_all`: once all users have so many together, nobody gets more who has any."""
        self._most = most
        self._in_all = in_all
        self._what = what
        self._open: Counter[str] = Counter()
        self.total = 0

    def of(self, name: str) -> int:
        """Return how many a user has."""
        return self._open[name]

    def check(self, user: User) -> None:
        has = self._open.get(user.name, 0)
        if not has or user.is_master:
            return
        if has >= self._most:
            limit = f"{has} {self._what}, and the limit for a user is {self._most}"
        elif self.total >= self._in_all:
            limit = f"{has} {self._what}, and the limit for all users together is reached"
        else:
            return
        raise TooManyRequests(f"too many requests: user {user.name} has {limit}; please try again.", retry_after=1)

    def enter(self, user: User, size: int = 1) -> None:
        self.check(user)
        self._open[user.name] += size
        self.total += size

    def leave(self, user: User, size: int = 1) -> None:
        self.total -= size
        self._open[user.name] -= size
        if not self._open[user.name]:
            del self._open[user.name]
