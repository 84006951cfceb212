"""New objects: Deployments to two members, to ever more members, with overrides; ConfigMaps."""

from __future__ import annotations

from benchmarks.objects import CONFIG_MAPS, IMAGE, REGISTRY
from benchmarks.propagating import Space
from benchmarks.scenario import Sizes
from benchmarks.scenarios.propagation.throughput import Throughput, throughput_figures

WIDE_DEPLOYMENTS = 1_000


class Rollout(Throughput):
    async def request(self, space: Space, objects: int) -> None:
        await space.make(objects)

    async def wait(self, space: Space, objects: int) -> None:
        await space.until_there(objects)


class Deployments(Rollout):
    name = "propagation.deployments"
    title = "Deployments to two members"
    sizes = Sizes(quick=100, base=1_000, more=(100, 20_000))
    figures = throughput_figures(
        rate={**dict.fromkeys((1_000, 3_000, 20_000), 300), 10_000: 450},
        memory={10_000: 400},
        cpu={10_000: 2.0},
        writes=dict.fromkeys((1_000, 3_000, 10_000, 20_000), 8),
    )


class Wide(Rollout):
    name = "propagation.wide"
    title = f"{WIDE_DEPLOYMENTS:,} Deployments to many members"
    counted = "members"
    sizes = Sizes(quick=2, base=5)

    def shape(self, size: int) -> tuple[int, int]:
        return WIDE_DEPLOYMENTS, size


class ConfigMaps(Rollout):
    name = "propagation.configmaps"
    title = "ConfigMaps to two members"
    counted = "ConfigMaps"
    kind = CONFIG_MAPS


class Overridden(Rollout):
    name = "propagation.overrides"
    title = "Deployments to two members, with another registry and variable in each"
    overridden = True

    async def check(self, space: Space) -> None:
        await space.expect_images(lambda member: f"{member}.{REGISTRY}/{IMAGE}")
