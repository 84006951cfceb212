"""Who is logged in: sessions in memory, found by the random id in a cookie.

Credentials are in memory only, inside the viewer of a session, and go when the session ends: by logout, after half an
hour without a request, after twelve hours, or with the process. The table keeps hashes of ids, so that looking one up
reveals nothing about the others by the time it takes.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from karmada.dashboard.viewer import Viewer
from karmada.kube.objects.clock import Clock

COOKIE: Final = "__Host-karmada-dashboard"
IDLE_SECONDS: Final = 30 * 60.0
LIFE_SECONDS: Final = 12 * 3600.0
MOST: Final = 1000
MOST_OF_ONE: Final = 50
"""The most sessions of one user, so that nobody's logins end the sessions of others."""


@dataclass(slots=True)
class Session:
    viewer: Viewer
    began: float
    used: float
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    closing: list[Callable[[], None]] = field(default_factory=list, repr=False)
    """Tasks that end with the session: the requests that are being handled, its open streams."""
    ended: bool = False


class Sessions:
    def __init__(
        self, clock: Clock, *, idle: float = IDLE_SECONDS, life: float = LIFE_SECONDS, most: int = MOST
    ) -> None:
        self._clock = clock
        self._idle, self._life, self._most = idle, life, most
        self._sessions: dict[bytes, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    async def open(self, viewer: Viewer) -> tuple[str, Session]:
        """Return a session and its id, which nobody else has; of too many, the one that is idle for longest ends."""
        await self.expire()
        name = viewer.identity.name
        own = [key for key, session in self._sessions.items() if session.viewer.identity.name == name]
        if len(own) >= MOST_OF_ONE:
            await self._end_idlest(own)
        while len(self._sessions) >= self._most:
            await self._end_idlest(self._sessions)
        now = self._clock.monotonic()
        secret, session = secrets.token_urlsafe(32), Session(viewer, now, now)
        self._sessions[_key(secret)] = session
        return secret, session

    async def find(self, secret: str, *, touch: bool = True) -> Session | None:
        """Return the session; None if there is none any more. `touch`: the viewer did something, so it is not idle."""
        key = _key(secret)
        session = self._sessions.get(key)
        if session is None:
            return None
        now = self._clock.monotonic()
        if self._is_over(session, now):
            await self._end(key)
            return None
        if touch:
            session.used = now
        return session

    async def close(self, secret: str) -> None:
        await self._end(_key(secret))

    async def close_all(self) -> None:
        for key in [*self._sessions]:
            await self._end(key)

    async def expire(self) -> None:
        """End those that are over; called now and then, so that credentials do not stay for nobody."""
        now = self._clock.monotonic()
        for key in [key for key, session in self._sessions.items() if self._is_over(session, now)]:
            await self._end(key)

    def _is_over(self, session: Session, now: float) -> bool:
        if self._clock.now() >= session.viewer.identity.until:
            return True
        return now - session.used >= self._idle or now - session.began >= self._life

    async def _end_idlest(self, keys: Iterable[bytes]) -> None:
        await self._end(min(keys, key=lambda key: self._sessions[key].used))

    async def _end(self, key: bytes) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            session.ended = True
            for close in [*session.closing]:
                close()
            await session.viewer.close()


def _key(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
