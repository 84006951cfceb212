"""All Deployments are deleted."""

from __future__ import annotations

from benchmarks.objects import numbered
from benchmarks.propagating import Space, each
from benchmarks.scenarios.propagation.throughput import Throughput


class Deletion(Throughput):
    name = "propagation.deletion"
    title = "Deletion of Deployments in two members"

    async def prepare(self, space: Space, objects: int) -> None:
        await space.make(objects)
        await space.until_there(objects)

    async def request(self, space: Space, objects: int) -> None:
        async def one(number: int) -> None:
            await space.plane.control.delete(space.kind, numbered(number), space.namespace)

        await each(range(objects), one)

    async def wait(self, space: Space, objects: int) -> None:  # noqa: ARG002 - all of them
        await space.until_gone()
