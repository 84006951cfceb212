"""Existing objects of large kinds, delivered by name and no faster than they are reconciled.

The objects of several informers are merged by name, and each step is a turn of the backlog (see there), a little ahead
of the keys that came of the steps before. So queues stay short, and an object is still parsed when the controllers that
it was delivered to reconcile it. Queues that nobody empties, as that of a member that hangs, hold up no step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import NamedTuple

from karmada.kube.runtime.backlog import Backlog, backlog
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.time_slice import TimeSlice

_STEP = 64
"""Objects delivered in a turn: about four milliseconds. More than a lane of a controller may be ahead of the others."""
_PAUSE = 8
"""Iterations of the loop between two steps: workers that wait for a moment come back to take their next keys."""


class _Existing(NamedTuple):
    name: str
    run: int
    """The number of its informer and namespace, in which names are sorted."""
    key: Key
    deliver: Callable[[Key], None]


async def deliver_by_name(informers: Iterable[Informer]) -> None:
    """Call the handlers that have subscribed (see Informer) for the objects that exist in these informers."""
    runs: list[Iterator[_Existing]] = []
    for informer in informers:
        deliver = informer.take_undelivered()
        if deliver is not None:
            for keys in await _by_namespace(informer.keys()):
                runs.append(_run(len(runs), keys, deliver))
    existing, waiting = merge(*runs), backlog()
    waiting.reached(existing, "")
    try:
        await waiting.until_quiet()
        await _deliver(existing, waiting)
    finally:
        waiting.reached(existing, None)


async def _deliver(existing: Iterator[_Existing], waiting: Backlog) -> None:
    before = ""
    while step := list(islice(existing, _STEP)):
        for _ in range(_PAUSE):
            await asyncio.sleep(0)
        await waiting.turn(before)
        before = step[0].name
        waiting.reached(existing, step[-1].name)
        for one in sorted(step, key=_by_run):
            one.deliver(one.key)


async def _by_namespace(keys: Iterable[Key]) -> Iterable[list[Key]]:
    """In the order in which an API server lists them: names are sorted within a namespace."""
    found: dict[str, list[Key]] = {}
    turn = TimeSlice()
    for key in keys:
        found.setdefault(key.namespace, []).append(key)
        if turn.is_over():
            await turn.next()
    return found.values()


def _by_run(one: _Existing) -> int:
    """Objects of one kind after the other: their handlers' code stays in the processor's caches."""
    return one.run


def _run(number: int, keys: Iterable[Key], deliver: Callable[[Key], None]) -> Iterator[_Existing]:
    return (_Existing(key.name, number, key, deliver) for key in keys)
