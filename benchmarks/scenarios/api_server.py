"""The API server alone, on one core, with everything it stores on disk before it answers; the client is on another.

Requests come over 16 TLS connections, each sending one at a time, from a client too small to be what is measured.
"""

from __future__ import annotations

import asyncio
import os
import time

import orjson

from benchmarks.objects import deployment, numbered
from benchmarks.processes import CLIENT, Meter
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.servers import running
from benchmarks.wire import Rate, Target, Watcher, run_load

_CONNECTIONS = 16
_WATCHERS = 100
_EVENTS = 500
_GETS = 5_000
_LISTS = 10
_MODULE = "karmada.components.apiserver"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_SERVER = "API server"
_STEPS = (1_000, 3_000, 10_000)


class ApiServer:
    name = "server"
    title = "The API server on one core"
    counted = "Deployments"
    sizes = Sizes(quick=500, base=1_000)
    foreign = False
    figures = (
        Figure(name="creates", unit="/s", better="higher", goals=dict.fromkeys(_STEPS, 2_000)),
        Figure(name="creates, half within", unit="ms"),
        Figure(name="creates, 99 of 100 within", unit="ms"),
        Figure(name="gets", unit="/s", better="higher", goals=dict.fromkeys(_STEPS, 6_000)),
        Figure(name="gets, 99 of 100 within", unit="ms"),
        Figure(name="list of up to 5,000", unit="ms"),
        Figure(name=f"events to {_WATCHERS} watchers", unit="/s", better="higher"),
        Figure(name="first start, with certificates to make", unit="s"),
        Figure(name="start, empty", unit="s", goals=dict.fromkeys(_STEPS, 1.5)),
        Figure(name="start, with the Deployments", unit="s"),
        Figure(name="resident", unit="MiB", goals={10_000: 200}),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        ours, theirs = _cores()
        figures, costs = {}, {}
        data = place.folder / "server"
        with running(_MODULE, data, core=theirs) as server:
            figures["first start, with certificates to make"] = server.seconds_to_ready
        with running(_MODULE, data, core=theirs) as server:
            figures["start, empty"] = server.seconds_to_ready
            os.sched_setaffinity(0, {ours})
            whole = Meter({_SERVER: server.process.pid, CLIENT: os.getpid()})
            meter = Meter({_SERVER: server.process.pid})
            made = await _creates(server.target, size)
            costs["CPU of creating, s"] = meter.cpu()[_SERVER]
            figures |= _rates("creates", made) | {"creates, half within": made.percentile(0.5) * 1e3}
            figures["resident"] = meter.use()[_SERVER].resident
            figures |= _rates("gets", await _gets(server.target, size))
            listed = await _lists(server.target)
            figures["list of up to 5,000"] = listed.percentile(0.5) * 1e3
            figures[f"events to {_WATCHERS} watchers"] = await _watches(server.target)
            uses = whole.use()
        with running(_MODULE, data, core=theirs) as server:
            figures["start, with the Deployments"] = server.seconds_to_ready
        costs["start, s"] = figures["start, with the Deployments"]
        costs["resident, MiB"] = figures["resident"]
        return Measurement(figures=figures, processes=uses, costs=costs)


def _cores() -> tuple[int, int]:
    """For the client and for the server; the same where there is but one."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[-1], allowed[0]


def _rates(name: str, rate: Rate) -> dict[str, float]:
    return {name: rate.per_second, f"{name}, 99 of 100 within": rate.percentile(0.99) * 1e3}


async def _creates(target: Target, total: int) -> Rate:
    def request(number: int) -> bytes:
        return target.request("POST", _DEPLOYMENTS, orjson.dumps(deployment(numbered(number), "default")))

    return await run_load(target, _CONNECTIONS, total, request, 201)


async def _gets(target: Target, names: int) -> Rate:
    def request(number: int) -> bytes:
        return target.request("GET", f"{_DEPLOYMENTS}/{numbered(number % names)}")

    return await run_load(target, _CONNECTIONS, _GETS, request, 200)


async def _lists(target: Target) -> Rate:
    return await run_load(target, 1, _LISTS, lambda _: target.request("GET", f"{_DEPLOYMENTS}?limit=5000"), 200)


async def _watches(target: Target) -> float:
    """Events delivered a second, from the first write until the last watcher has the last of them."""
    loop = asyncio.get_running_loop()
    received, everything = 0, loop.create_future()

    def on_event(count: int) -> None:
        nonlocal received
        received += count
        if received >= _WATCHERS * _EVENTS and not everything.done():
            everything.set_result(None)

    request = target.request("GET", f"{_CONFIG_MAPS}?watch=1&labelSelector=benchmark%3Dwatch")
    watchers = []
    for _ in range(_WATCHERS):
        _, watcher = await loop.create_connection(
            lambda: Watcher(request, on_event), target.host, target.port, ssl=target.tls
        )
        await watcher.ready()
        watchers.append(watcher)

    def new(number: int) -> bytes:
        metadata = {"name": f"event-{number}", "labels": {"benchmark": "watch"}}
        return target.request("POST", _CONFIG_MAPS, orjson.dumps({"metadata": metadata, "data": {"n": str(number)}}))

    began = time.perf_counter()
    await run_load(target, _CONNECTIONS, _EVENTS, new, 201)
    await everything
    seconds = time.perf_counter() - began
    for watcher in watchers:
        watcher.transport.close()
    return received / seconds
