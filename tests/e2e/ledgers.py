"""The history of a member's Deployments, recorded by a watch that goes on whatever happens to the control plane."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.e2e.places import Place
from tests.support.eventually import eventually_blocking


class Ledger:
    """What happened to a member's Deployments: how often each came and went, and what there is now."""

    def __init__(self, place: Place, namespace: str, within: float = 90.0) -> None:
        self._namespace = namespace
        self._within = within
        self.came: Counter[str] = Counter()
        self.went: Counter[str] = Counter()
        self.now: dict[str, Obj] = {}
        self._version = "0"
        self._following = place.start(self._follow(place.client))

    async def _follow(self, client: Client) -> None:
        while True:
            try:
                async for event in await client.watch(DEPLOYMENTS, self._namespace, resource_version=self._version):
                    self._version = event.object["metadata"]["resourceVersion"]
                    if event.type != "BOOKMARK":
                        self._note(event.type, event.object)
            except ConnectionFailed:
                await asyncio.sleep(0.1)

    def _note(self, what: str, obj: Obj) -> None:
        name = meta.name(obj)
        if what == "DELETED":
            self.went[name] += 1
            del self.now[name]
        else:
            self.came[name] += what == "ADDED"
            self.now[name] = obj

    def count(self, check: Callable[[Obj], bool] = bool) -> int:
        return sum(check(obj) for obj in list(self.now.values()))

    def until(self, count: int, check: Callable[[Obj], bool] = bool) -> None:
        """At least so many are there of which the check says yes."""

        def look() -> bool:
            assert not self._following.done(), self._following.exception()
            return self.count(check) >= count

        try:
            eventually_blocking(look, self._within)
        except AssertionError as error:
            raise AssertionError(f"{self.count(check)} of {count}, {len(self.now)} there: {error}") from None

    def until_empty(self) -> None:
        eventually_blocking(lambda: not self.now, self._within)

    def stop(self) -> None:
        self._following.cancel()
