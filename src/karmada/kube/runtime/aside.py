"""Long work on one object, off the event loop.

Decoding, defaulting, validating, merging or encoding an object of megabytes takes seconds in Python. In a thread of its
own it gives way to the loop every few milliseconds, so that others are served meanwhile. There is one such thread, so
the loop keeps at least every second turn of the interpreter; who waits for it takes turns by owner, so that somebody
with a hundred large objects waits behind their own and not before others.

What is done aside has its object for itself, or only reads it, and reads nothing that the loop changes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import orjson

from karmada.kube.objects.doc import SharedObject
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import OWNER

LARGE = 32 * 1024
"""Bytes of an object from which on work on it is done aside."""

T = TypeVar("T")


class Aside:
    """A thread, and the work that waits for it, by owner."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="large-objects")
        self._lock = Lock()
        self._waiting: OrderedDict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = OrderedDict()

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Return the result of the work; what is cancelled before its turn is not done."""
        done: Future[T] = Future()
        with self._lock:
            self._waiting.setdefault(OWNER.get(), deque()).append((done, partial(work, *arguments)))
        self._thread.submit(self._take_turn)
        return await asyncio.wrap_future(done)

    def _take_turn(self) -> None:
        with self._lock:
            owner, queue = self._waiting.popitem(last=False)
            done, work = queue.popleft()
            if queue:
                self._waiting[owner] = queue  # behind the others
        if not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - handed on to who waits
            done.set_exception(error)


ASIDE = Aside()


def is_large(obj: Obj) -> bool:
    """Return whether an object is as large; of a stored one its bytes are known."""
    if isinstance(obj, SharedObject):
        return obj.source.weight >= LARGE
    return len(orjson.dumps(obj)) >= LARGE
