"""How fast the machine is just now, by the time that a fixed piece of work takes.

A virtual machine's speed changes with what its neighbours do, within seconds, and nothing inside shows it. So before,
during and after every measurement the same is done that a control plane spends its time with: JSON is read, copied,
changed, compared and written, over more of it than a processor's near caches hold. The result is in rounds a second of
CPU time, so that other processes on the machine hardly change it. None of it is the project's own code: a yardstick
must not grow.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from threading import Event, Thread
from types import TracebackType
from typing import Any

import orjson

REFERENCE = 35_000.0
"""Rounds per second of the machine that goals in time are meant for."""
_OBJECTS = 400
_LOOKS = 7
_CPU_SECONDS = 0.01
"""How long one look takes."""
_EVERY_SECONDS = 5.0
"""Between two times during a measurement: together less than a fiftieth of a core."""


def speed() -> float:
    """Rounds per CPU second; the median of some looks, since a short one may be disturbed."""
    texts = [orjson.dumps(_example(index)) for index in range(_OBJECTS)]
    return statistics.median(_look(texts) for _ in range(_LOOKS))


class Speeds:
    """The machine's speed at the beginning, every few seconds, and at the end; `values` has them all."""

    def __init__(self, every_seconds: float = _EVERY_SECONDS) -> None:
        self.values: list[float] = []
        self._every_seconds = every_seconds
        self._ended = Event()
        self._thread = Thread(target=self._watch, name="speed", daemon=True)

    def __enter__(self) -> Speeds:
        self.values.append(speed())
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self.values.append(speed())

    def _watch(self) -> None:
        while not self._ended.wait(self._every_seconds):
            self.values.append(speed())


def _look(texts: Sequence[bytes]) -> float:
    rounds, began = 0, time.thread_time()
    while (used := time.thread_time() - began) < _CPU_SECONDS:
        _round(texts[rounds % _OBJECTS])
        rounds += 1
    return rounds / used


def _round(text: bytes) -> None:
    read = orjson.loads(text)
    changed = _copied(read)
    changed["status"]["readyReplicas"] += 1
    assert changed != read
    orjson.dumps(changed)


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {name: _copied(part) for name, part in value.items()}
    if type(value) is list:
        return [_copied(part) for part in value]
    return value


def _example(index: int) -> dict[str, Any]:
    """An object of some 2 KB."""
    container = {
        "name": f"part-{index}",
        "image": f"example/part:{index}",
        "env": [{"name": f"VARIABLE_{number}", "value": f"{index}-{number}"} for number in range(16)],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
    }
    return {
        "metadata": {"name": f"example-{index}", "labels": {f"label-{number}": str(index) for number in range(8)}},
        "spec": {"replicas": index, "template": {"spec": {"containers": [container, container]}}},
        "status": {"readyReplicas": index, "conditions": [{"type": f"Is{number}"} for number in range(4)]},
    }
