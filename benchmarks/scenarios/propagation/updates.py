"""A new image for all Deployments that are there."""

from __future__ import annotations

from benchmarks.objects import image_patch, numbered
from benchmarks.propagating import Space, each
from benchmarks.scenarios.propagation.throughput import Throughput

_IMAGE = "nginx:1.28"


class Updates(Throughput):
    name = "propagation.updates"
    title = "A new image for Deployments in two members"

    async def prepare(self, space: Space, objects: int) -> None:
        await space.make(objects)
        await space.until_there(objects)
        space.forget_changes()

    async def request(self, space: Space, objects: int) -> None:
        async def one(number: int) -> None:
            patch = image_patch(_IMAGE)
            await space.plane.control.patch(space.kind, numbered(number), space.namespace, patch, type="strategic")

        await each(range(objects), one)

    async def wait(self, space: Space, objects: int) -> None:
        await space.until_changed(objects)

    async def check(self, space: Space) -> None:
        await space.expect_images(lambda _: _IMAGE)
