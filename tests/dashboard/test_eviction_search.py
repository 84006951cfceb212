"""Bindings that leave a cluster are found among any number of bindings, at a bounded cost."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.dashboard.eviction_search import EvictionSearch, Found
from karmada.kube.objects import meta
from karmada.kube.objects.errors import Expired, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj

TASKS = [{"fromCluster": "m1"}]


class Bindings:
    """As a client of them: lists in pages, gets, and counts what it was requested for."""

    def __init__(self, count: int) -> None:
        self.of: dict[GVR, dict[str, Obj]] = {ResourceBinding.gvr: {}, ClusterResourceBinding.gvr: {}}
        for number in range(count):
            self.put(f"b{number:03d}")
        self.listed = self.gets = 0
        self.expired = False

    def put(self, name: str, *, evicted: bool = False, kind: GVR = ResourceBinding.gvr) -> None:
        spec = {"gracefulEvictionTasks": TASKS} if evicted else {}
        self.of[kind][name] = {"metadata": {"namespace": "default", "name": name}, "spec": spec}

    async def list(self, gvr: GVR, _namespace: str = "", *, limit: int, continue_: str, **_: Any) -> Obj:
        if continue_ and self.expired:
            self.expired = False
            raise Expired("too old")
        rest = [name for name in sorted(self.of[gvr]) if name > continue_]
        page, more = rest[:limit], len(rest) - limit
        self.listed += len(page)
        metadata: Obj = {"resourceVersion": "1"}
        metadata |= {"continue": page[-1], "remainingItemCount": more} if more > 0 else {}
        return {"metadata": metadata, "items": [self.of[gvr][name] for name in page]}

    async def get(self, gvr: GVR, name: str, _namespace: str) -> Obj:
        self.gets += 1
        if name not in self.of[gvr]:
            raise NotFound("gone")
        return self.of[gvr][name]


class Looking:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int, most: int = 20) -> None:
        monkeypatch.setattr("karmada.dashboard.eviction_search._PAGE", 10)
        self.bindings = Bindings(count)
        self.search = EvictionSearch(most)

    async def look(self) -> Found:
        client: Any = self.bindings
        return await self.search.look(client)


def names(found: Found) -> list[str]:
    return [meta.name(one) for one in found.bindings]


async def test_what_is_far_behind_is_found_after_some_looks_and_each_reads_a_bounded_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looking = Looking(monkeypatch, 55)
    looking.bindings.put("b050", evicted=True)
    looking.bindings.put("wide", evicted=True, kind=ClusterResourceBinding.gvr)
    assert [(names(found), found.left > 0) for found in [await looking.look() for _ in range(3)]] == [
        ([], True),
        ([], True),
        (["b050", "wide"], False),
    ]
    assert looking.bindings.listed == 56


async def test_what_was_found_is_shown_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    looking = Looking(monkeypatch, 55)
    for name in ("b001", "b002"):
        looking.bindings.put(name, evicted=True)
    assert names(await looking.look()) == ["b001", "b002"]
    looking.bindings.put("b001")
    del looking.bindings.of[ResourceBinding.gvr]["b002"]
    assert names(await looking.look()) == []
    assert looking.bindings.gets == 2


async def test_rounds_go_on_and_a_list_that_has_expired_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looking = Looking(monkeypatch, 30)
    await looking.look()
    looking.bindings.expired = True
    found = await looking.look()
    assert found.left > 0
    assert [(await looking.look()).left for _ in range(2)] == [0, 0]
    looking.bindings.put("b029", evicted=True)
    assert names([await looking.look() for _ in range(2)][-1]) == ["b029"]
