"""Searches over the cached pods of many clusters, as the server answers them: from the request to the bytes.

The caches are the real ones, filled from lists that members would send. The index is filled while nothing else runs, so
how long that takes is its own cost; requests then come one after the other, each kind of search many times.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import orjson

from benchmarks.processes import Meter, memory
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.timings import percentile
from karmada.kube.client.client import Client
from karmada.kube.client.discovery import Mapping as Kind
from karmada.kube.client.transport import Call, Transport, WatchEvent
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.tuning import tune_garbage_collection
from karmada.kube.server.auth.user import MASTERS, User
from karmada.kube.server.http.request import Query, Request, parse_path
from karmada.kube.server.http.results import RawResult
from karmada.search.index.api import QueryApi
from karmada.search.index.service import Change, SearchIndex
from karmada.search.kind_cache import ReflectedKind
from karmada.search.reading import MemberReading
from karmada.search.registries import ALL
from karmada.search.sinks import Sink

_CLUSTERS = 20
_PER_APP = 20
_TIMES = 20
_GOAL_SIZE, _GOAL_MS = 100_000, 100
_PODS = Kind(GVR("", "v1", "pods"), GVK("", "v1", "Pod"), True)
_PATH = "/apis/search.karmada.io/v1alpha1/search/query"
_USER = User("benchmark", groups=(MASTERS,))
_WORDS = ("web", "api", "worker", "cache", "queue", "auth", "billing", "mail")
_SEARCHES: dict[str, dict[str, str]] = {
    "a name": {"q": "billing-6"},
    "an image": {"q": "registry.example.com/billing-6:1.7"},
    "a reason": {"q": "imagepullbackoff"},
    "a word of all": {"q": "running"},
    "a word of none": {"q": "nothing"},
    "a label": {"labelSelector": "app=billing-6"},
    "without a label": {"labelSelector": "tier!=front"},
    "a field": {"fieldSelector": "spec.nodeName=node-7"},
    "not running": {"fieldSelector": "status.phase!=Running"},
    "an owner": {"owner": "ReplicaSet/billing-6"},
    "a word and a label": {"q": "running", "labelSelector": "app=billing-6"},
    "everything": {},
}


class SearchQuery:
    name = "search.query"
    title = f"Searches over the pods of {_CLUSTERS} clusters"
    counted = "cached pods"
    sizes = Sizes(quick=2_000, base=10_000)
    foreign = False
    figures = (
        Figure(name="the slowest search: half within", unit="ms"),
        Figure(name="the slowest search: 95 of 100 within", unit="ms", goals={_GOAL_SIZE: _GOAL_MS}),
        *(Figure(name=f"{name}: half within", unit="ms") for name in _SEARCHES),
        Figure(name="indexed within", unit="s"),
        Figure(name="an object is indexed in", unit="µs of CPU"),
        Figure(name="the index takes", unit="MiB"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        tune_garbage_collection()
        caches = _Caches()
        index = SearchIndex(caches)
        place.progress("caching")
        await caches.fill(size)
        meter = Meter({"search": os.getpid()})
        place.progress("indexing")
        figures = await _indexed(caches, index, size)
        place.progress("searching")
        api = QueryApi(caches, index, MemberReading(caches.client, RealClock()), RealClock())
        taken = {name: [await _timed(api, query) for _ in range(_TIMES)] for name, query in _SEARCHES.items()}
        slowest = max(taken.values(), key=lambda times: percentile(times, 0.95))
        figures["the slowest search: half within"] = percentile(slowest, 0.5)
        figures["the slowest search: 95 of 100 within"] = percentile(slowest, 0.95)
        figures |= {f"{name}: half within": percentile(times, 0.5) for name, times in taken.items()}
        uses = meter.use()
        await index.stop()
        await caches.stop()
        return Measurement(figures=figures, processes=uses, costs={"indexed, s": figures["indexed within"]})


async def _indexed(caches: _Caches, index: SearchIndex, size: int) -> dict[str, float]:
    before, began, used = memory(os.getpid())[0], time.perf_counter(), time.process_time()
    left, done = size, asyncio.Event()

    def count(change: Change) -> None:
        nonlocal left
        left -= len(change.written)
        if left <= 0:
            done.set()

    index.changed.append(count)
    caches.report_to(index)
    await done.wait()
    return {
        "indexed within": time.perf_counter() - began,
        "an object is indexed in": (time.process_time() - used) / size * 1e6,
        "the index takes": memory(os.getpid())[0] - before,
    }


async def _timed(api: QueryApi, given: Mapping[str, str]) -> float:
    began = time.perf_counter()
    query = Query.parse(urlencode(given))
    result = await api.handle(Request("GET", parse_path("GET", _PATH, query), query, {}, _USER))
    assert isinstance(result, RawResult)
    return (time.perf_counter() - began) * 1e3


class _Caches:
    """The pods of all clusters, each in a real cache."""

    kinds: Mapping[GVR, Kind] = {_PODS.gvr: _PODS}

    def __init__(self) -> None:
        self._caches: dict[str, ReflectedKind] = {}

    async def fill(self, size: int) -> None:
        for number in range(_CLUSTERS):
            name = f"member{number + 1}"
            cache = self._caches[name] = ReflectedKind(name, _PODS, ALL, _Member(number, size), RealClock())
            cache.start()
            await cache.wait_synced()

    def report_to(self, sink: Sink) -> None:
        for name in self._caches:
            sink.replaced(name, _PODS.gvr)

    async def stop(self) -> None:
        await asyncio.gather(*(cache.stop() for cache in self._caches.values()))

    def clusters(self, gvr: GVR) -> list[str]:
        return sorted(self._caches) if gvr == _PODS.gvr else []

    def cache(self, cluster: str, gvr: GVR) -> ReflectedKind | None:
        return self._caches.get(cluster) if gvr == _PODS.gvr else None

    def client(self, cluster: str) -> Client:
        raise _unused(cluster)

    def add_sink(self, sink: Sink) -> None:
        raise _unused(sink)

    def on_cluster_added(self, call: Callable[[], None]) -> Callable[[], None]:
        raise _unused(call)


class _Member(Transport):
    """The lists of a cluster, page by page; nothing changes there."""

    def __init__(self, number: int, size: int) -> None:
        self._numbers = range(number, size, _CLUSTERS)

    async def body(self, call: Call) -> bytes:
        start, limit = int(call.query.get("continue") or 0), int(call.query["limit"])
        items = [_pod(number) for number in self._numbers[start : start + limit]]
        more = {"continue": str(start + limit)} if start + limit < len(self._numbers) else {}
        return orjson.dumps({"metadata": {"resourceVersion": "1000000", **more}, "items": items})

    async def lines(self, call: Call) -> AsyncGenerator[bytes, None]:  # noqa: ARG002
        await asyncio.Event().wait()
        yield b""

    async def call(self, call: Call) -> Any:
        raise _unused(call)

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        raise _unused(call)


def _unused(what: object) -> AssertionError:
    return AssertionError(f"no search needs this: {what}")


def _pod(number: int) -> Obj:
    """1.4 kB; pods of an application resemble each other, two of a hundred do not run."""
    luck = random.Random(number)
    group = number // _PER_APP
    app = f"{_WORDS[group % len(_WORDS)]}-{group % 500}"
    image, broken = f"registry.example.com/{app}:1.{group % 40}.0", luck.random() < 0.02
    state = {"waiting": {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}}
    running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    return {
        "metadata": {
            "name": f"{app}-{luck.getrandbits(36):09x}-{luck.getrandbits(20):05x}",
            "namespace": f"team-{group % 50}",
            "uid": str(uuid.UUID(int=luck.getrandbits(128))),
            "resourceVersion": str(number + 1),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": app, "tier": luck.choice(("front", "back")), "part-of": f"shop-{group % 30}"},
            "annotations": {"prometheus.io/scrape": "true", "example.com/owner": f"team-{group % 50}@example.com"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "controller": True}],
        },
        "spec": {
            "nodeName": f"node-{number % 500}",
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "serviceAccountName": "default",
            "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "main", "image": image, "resources": {"requests": {"cpu": "10m"}}}],
        },
        "status": {
            "phase": "Pending" if broken else "Running",
            "podIP": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
            "qosClass": "Burstable",
            "conditions": [{"type": "Ready", "status": "False" if broken else "True"}],
            "containerStatuses": [{"name": "main", "ready": not broken, "state": state if broken else running}],
        },
    }
