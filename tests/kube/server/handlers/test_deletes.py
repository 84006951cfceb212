"""What a deletion marks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.server.handlers.deletes import Deletes


async def test_a_shorter_grace_counts_from_the_first_deletion() -> None:
    clock, nothing = FakeClock(), SimpleNamespace()
    unused: Any = nothing
    deletes = Deletes(unused, unused, unused, clock)
    resource: Any = SimpleNamespace(strategy=SimpleNamespace(mark_deleting=None))
    pod: Obj = {"metadata": {}}
    begun = clock.now()
    assert deletes._mark(resource, pod, [], 30)
    await clock.advance(10)
    assert deletes._mark(resource, pod, [], 5)
    assert parse_time(pod["metadata"]["deletionTimestamp"]) == begun + 5
