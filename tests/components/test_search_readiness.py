"""When karmada-search is ready."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from karmada.components.search import _follow
from karmada.kube.objects.clock import FakeClock
from karmada.kube.server.http.health import Health


async def test_it_is_ready_once_everything_is_cached_or_after_a_time_without_what_is_not() -> None:
    clock = FakeClock()
    caches = SimpleNamespace(synced=False)
    search: Any = SimpleNamespace(caches=caches, start=None)
    extension: Any = SimpleNamespace(clock=clock, started=[], server=SimpleNamespace(health=Health()))
    _follow(extension, search, 60.0)
    health = extension.server.health
    assert health.failing("readyz") == ["search-caches"]
    assert health.failing("livez") == []
    caches.synced = True
    assert health.failing("readyz") == []
    caches.synced = False
    await clock.advance(61)
    assert health.failing("readyz") == []
