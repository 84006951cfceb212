"""The control plane is killed and restarted, and members fall silent, in the middle of propagating a thousand objects.

What a member lived through is told by a watch on it that goes on all the while: it must have been asked for every
object once, for every change once, and for nothing else.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from programs import eventually
from propagating import (
    BINDINGS,
    DEPLOYMENTS,
    WORKS,
    Place,
    Propagation,
    as_text,
    deployment,
    image,
    in_clusters,
    is_in,
    override,
    policy,
    propagation,
    rule,
)

pytestmark = pytest.mark.e2e

COUNT = 500
NAMESPACE = "many"
MEMBERS = ("member1", "member2")
WITHIN = 90.0
NAMES = {f"web-{number:03}" for number in range(COUNT)}
EVERY_DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}
PATIENT = {
    "clusterAffinity": {"clusterNames": list(MEMBERS)},
    "clusterTolerations": [{"key": "cluster.karmada.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}],
}
"""A cluster that is not ready will do: it is going to be."""


class Ledger:
    """What happened to the Deployments of a member: how often each came and went, and what there is now."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.came: Counter[str] = Counter()
        self.went: Counter[str] = Counter()
        self.now: dict[str, Obj] = {}
        self._following: Future[None] = place.start(self._follow(place.client))

    async def _follow(self, client: Client) -> None:
        stream = await client.watch(DEPLOYMENTS, NAMESPACE, resource_version="0")
        async for event in stream:
            name = event.object["metadata"]["name"]
            if event.type == "ADDED":
                self.came[name] += 1
            elif event.type == "DELETED":
                self.went[name] += 1
            if event.type == "DELETED":
                del self.now[name]
            else:
                self.now[name] = event.object

    def until(self, check: Callable[[dict[str, Obj]], bool], what: str) -> None:
        def look() -> bool:
            assert not self._following.done(), self._following.exception()
            return check(dict(self.now))

        try:
            eventually(look, WITHIN)
        except AssertionError as error:
            raise AssertionError(f"not {what} within {WITHIN:g} s: {len(self.now)} there ({error})") from None

    def stop(self) -> None:
        self._following.cancel()
