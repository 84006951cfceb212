"""Memory is given back after peaks, rarely."""

from __future__ import annotations

import asyncio

import pytest

from karmada.kube.runtime import memory


async def test_many_peaks_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    given = asyncio.Queue[None]()
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(memory, "GIVE_BACK_SECONDS", 0.0)
    monkeypatch.setattr(memory, "give_back", lambda: loop.call_soon_threadsafe(given.put_nowait, None))
    gives_back = memory.GivesBack()
    for _ in range(2):
        for _ in range(100):
            gives_back.soon()
        async with asyncio.timeout(60):
            await given.get()
        assert given.empty()


def test_giving_back_is_possible_here() -> None:
    memory.give_back()
