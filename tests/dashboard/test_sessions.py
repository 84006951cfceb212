"""Sessions end when they should, and take the viewer's credentials with them."""

from __future__ import annotations

from karmada.dashboard.sessions import IDLE_SECONDS, LIFE_SECONDS, Sessions
from karmada.dashboard.viewer import Identity, Viewer
from karmada.kube.client.config import RestConfig
from karmada.kube.objects.clock import FakeClock


def _viewer(clock: FakeClock, name: str = "a") -> Viewer:
    return Viewer(Identity(name), RestConfig("https://127.0.0.1:1", token="s3cret"), clock)


async def test_a_session_is_found_by_its_id_and_by_nothing_else() -> None:
    clock = FakeClock()
    sessions = Sessions(clock)
    secret, session = await sessions.open(_viewer(clock))
    other, _ = await sessions.open(_viewer(clock))
    assert secret != other
    assert len(secret) >= 43
    assert await sessions.find(secret) is session
    assert await sessions.find("") is None
    assert await sessions.find(secret[:-1]) is None
    assert "s3cret" not in repr(session)


async def test_a_session_ends_when_nobody_uses_it_and_live_updates_are_no_use() -> None:
    clock = FakeClock()
    sessions = Sessions(clock)
    secret, _ = await sessions.open(_viewer(clock))
    await clock.advance(IDLE_SECONDS - 1)
    assert await sessions.find(secret) is not None
    await clock.advance(IDLE_SECONDS - 1)
    assert await sessions.find(secret, touch=False) is not None
    await clock.advance(1)
    assert await sessions.find(secret) is None


async def test_a_session_ends_after_half_a_day_however_busy() -> None:
    clock = FakeClock()
    sessions = Sessions(clock)
    secret, session = await sessions.open(_viewer(clock))
    ended: list[bool] = []
    session.closing.append(lambda: ended.append(True))
    for _ in range(int(LIFE_SECONDS // 1200)):
        assert await sessions.find(secret) is not None
        await clock.advance(1200)
    assert await sessions.find(secret) is None
    assert ended == [True]


async def test_a_session_ends_with_the_certificate_it_began_with() -> None:
    clock = FakeClock()
    sessions = Sessions(clock)
    identity = Identity("a", until=clock.now() + 60)
    secret, _ = await sessions.open(Viewer(identity, RestConfig("https://127.0.0.1:1"), clock))
    await clock.advance(59)
    assert await sessions.find(secret) is not None
    await clock.advance(1)
    assert await sessions.find(secret) is None


async def test_there_are_at_most_so_many_and_the_longest_idle_ends_first() -> None:
    clock = FakeClock()
    sessions = Sessions(clock, most=2)
    first, _ = await sessions.open(_viewer(clock))
    await clock.advance(1)
    second, _ = await sessions.open(_viewer(clock))
    await clock.advance(1)
    assert await sessions.find(first) is not None
    await sessions.open(_viewer(clock))
    assert await sessions.find(second) is None
    assert await sessions.find(first) is not None
    assert len(sessions) == 2
    await sessions.close(first)
    assert await sessions.find(first) is None


async def test_what_is_over_is_dropped_without_being_requested() -> None:
    clock = FakeClock()
    sessions = Sessions(clock)
    await sessions.open(_viewer(clock))
    await clock.advance(IDLE_SECONDS)
    await sessions.expire()
    assert len(sessions) == 0
