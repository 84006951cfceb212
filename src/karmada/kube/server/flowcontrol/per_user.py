"""Limits of what one user may have open at the same time, beside the seats that users share."""

from __future__ import annotations

from collections import Counter

from karmada.kube.objects.errors import TooManyRequests
from karmada.kube.server.auth.user import User


class PerUser:
    """Counts what each user has open, up to a limit that does not hold for system:masters."""

    def __init__(self, most: int, what: str) -> None:
        self._most = most
        self._what = what
        self._open: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return self._open.total()

    def of(self, name: str) -> int:
        """Return how many a user has."""
        return self._open[name]

    def check(self, user: User) -> None:
        if self._open.get(user.name, 0) >= self._most and not user.is_master:
            raise TooManyRequests(
                f"too many requests: user {user.name} has {self._most} {self._what}, which is the limit for a user;"
                " please try again later.",
                retry_after=1,
            )

    def enter(self, user: User) -> None:
        self.check(user)
        self._open[user.name] += 1

    def leave(self, user: User) -> None:
        self._open[user.name] -= 1
        if not self._open[user.name]:
            del self._open[user.name]
