"""A kind of its own, all of whose operations are scripts, beside a native kind with the same content.

Both are measured in one run, one after the other, so that their ratio holds although machines change their speed.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.customizing import customize
from benchmarks.objects import WEBS, numbered
from benchmarks.planes import plane
from benchmarks.propagating import Space, space
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.scenarios.propagation.rollout import Deployments, Rollout
from karmada.api.work import ResourceBinding

_REPLICAS = 2


class Webs(Rollout):
    """Not a scenario of its own: what the scripts do."""

    name = "propagation.customized"
    title = "Objects of a CRD with scripts to two members"
    kind = WEBS

    async def run(self, size: int, place: Place) -> Measurement:
        objects, members = self.shape(size)
        async with plane(place, members) as found:
            await customize(found)
            async with space(found, self.kind) as where:
                return await self.measure(where, objects, members, place)

    async def check(self, space: Space) -> None:
        """That the scripts were used: only they know what replicas are."""
        name = f"{numbered(0)}-web"
        binding = await space.plane.control.get(ResourceBinding.gvr, name, space.namespace)
        if binding["spec"].get("replicas") != _REPLICAS:
            raise RuntimeError(f"the binding {name} has replicas {binding['spec'].get('replicas')}, not {_REPLICAS}")


class Customized:
    name = "propagation.customized"
    title = "Objects of a CRD with scripts for all operations to two members, beside Deployments of the same content"
    counted = "objects"
    sizes = Sizes(quick=50, base=100)
    foreign = False
    figures = (
        Figure(name="scripts beside native", unit="times", better="higher", goals={1_000: 0.5}),
        Figure(name="Works, scripts", unit="/s", better="higher"),
        Figure(name="Works, native", unit="/s", better="higher"),
        Figure(name="control plane, CPU per Work, scripts", unit="ms"),
        Figure(name="control plane, CPU per Work, native", unit="ms"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        places = {mode: replace(place, folder=place.folder / mode) for mode in ("native", "scripts")}
        for one in places.values():
            one.folder.mkdir()
        native = await Deployments().run(size, places["native"])
        scripts = await Webs().run(size, places["scripts"])
        per_work = "control plane, CPU per Work"
        figures = {
            "scripts beside native": scripts.figures["Works"] / native.figures["Works"],
            "Works, scripts": scripts.figures["Works"],
            "Works, native": native.figures["Works"],
            f"{per_work}, scripts": scripts.figures[per_work],
            f"{per_work}, native": native.figures[per_work],
        }
        return Measurement(figures=figures, processes=scripts.processes, costs=scripts.costs)
