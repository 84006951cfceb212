"""What a control plane weighs: with nothing in it, with Deployments in two members, and after they are gone again."""

from __future__ import annotations

from benchmarks.objects import DEPLOYMENTS, numbered
from benchmarks.planes import plane
from benchmarks.processes import CONTROL_PLANE, MEMBERS, Meter, at_rest, memory, until_at_rest
from benchmarks.propagating import Space, each, space
from benchmarks.scenario import Figure, Measurement, Place, Sizes

_REST_SECONDS = 4.0


class Memory:
    name = "memory"
    title = "Memory of the control plane"
    counted = "Deployments"
    sizes = Sizes(quick=100, base=300)
    foreign = False
    figures = (
        Figure(name="empty, resident", unit="MiB"),
        Figure(name="empty, proportional", unit="MiB"),
        Figure(name="with them, resident", unit="MiB"),
        Figure(name="with them, proportional", unit="MiB"),
        Figure(name="peak", unit="MiB"),
        Figure(name="each Deployment", unit="KiB"),
        Figure(name="when they are gone, resident", unit="MiB"),
        Figure(name="CPU at rest", unit="% of a core"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        async with plane(place, 2) as found, space(found, DEPLOYMENTS) as where:
            pid = found.pids[CONTROL_PLANE]
            meter = Meter({name: found.pids[name] for name in (CONTROL_PLANE, MEMBERS)})
            await until_at_rest([pid])
            resident, proportional, _ = memory(pid)
            figures = {"empty, resident": resident, "empty, proportional": proportional or 0.0}
            await where.make(size)
            await where.until_there(size)
            await until_at_rest([pid])
            figures["CPU at rest"] = 100 * await at_rest([pid], _REST_SECONDS)
            uses = meter.use()
            figures["when they are gone, resident"] = await _emptied(where, size, pid)
        used = uses[CONTROL_PLANE]
        grown = used.resident - figures["empty, resident"]
        figures |= {
            "with them, resident": used.resident,
            "with them, proportional": used.proportional or 0.0,
            "peak": used.peak,
            "each Deployment": grown * 1024 / size,
        }
        return Measurement(figures=figures, processes=uses, costs={"resident above empty, MiB": grown})


async def _emptied(where: Space, size: int, pid: int) -> float:
    async def one(number: int) -> None:
        await where.plane.control.delete(DEPLOYMENTS, numbered(number), where.namespace)

    await each(range(size), one)
    await where.until_gone()
    await until_at_rest([pid])
    resident, _, _ = memory(pid)
    return resident
