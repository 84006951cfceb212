"""Mode Pull beside mode Push: the same Deployments to two members, by the control plane and by agents.

Both are measured in one run, one after the other, so that their ratio holds although machines change their speed. The
agents are processes of their own and share the machine with everything else.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.agents import AGENT, pull_plane
from benchmarks.objects import DEPLOYMENTS
from benchmarks.processes import CONTROL_PLANE, memory, until_at_rest
from benchmarks.propagating import space
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.scenarios.propagation.rollout import Deployments

_MEMBERS = 2


class Pull:
    name = "propagation.pull"
    title = "Deployments to two members in mode Pull, beside the same in mode Push"
    counted = "Deployments"
    sizes = Sizes(quick=100, base=500)
    foreign = False
    figures = (
        Figure(name="Pull beside Push", unit="times", better="higher", goals={5_000: 0.8}),
        Figure(name="Works, Pull", unit="/s", better="higher"),
        Figure(name="Works, Push", unit="/s", better="higher"),
        Figure(name="agent at rest, resident", unit="MiB", goals={5_000: 80}),
        Figure(name="agent with Works, resident", unit="MiB"),
        Figure(name="agents, CPU per Work", unit="ms"),
        Figure(name="control plane, CPU per Work, Pull", unit="ms"),
        Figure(name="control plane, CPU per Work, Push", unit="ms"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        pushing, pulling = (replace(place, folder=place.folder / mode) for mode in ("push", "pull"))
        for one in (pushing, pulling):
            one.folder.mkdir()
        push = await Deployments().run(size, pushing)
        pull = await self.load(size, pulling)
        rate = push.figures["Works"]
        figures = {
            "Pull beside Push": pull.figures["Works, Pull"] / rate,
            "Works, Push": rate,
            "control plane, CPU per Work, Push": _per_work(push, CONTROL_PLANE, size),
        }
        return Measurement(figures={**pull.figures, **figures}, processes=pull.processes, costs=pull.costs)

    async def load(self, size: int, place: Place) -> Measurement:
        """Mode Pull alone."""
        async with pull_plane(place, _MEMBERS) as found, space(found, DEPLOYMENTS) as where:
            agents = {name: pid for name, pid in found.pids.items() if name.startswith(AGENT.format(""))}
            await until_at_rest(agents.values())
            idle = max(memory(pid)[0] for pid in agents.values())
            pull = await Deployments().measure(where, size, _MEMBERS, place)
        figures = {
            "Works, Pull": pull.figures["Works"],
            "agent at rest, resident": idle,
            "agent with Works, resident": max(pull.processes[name].resident for name in agents),
            "agents, CPU per Work": sum(_per_work(pull, name, size) for name in agents),
            "control plane, CPU per Work, Pull": _per_work(pull, CONTROL_PLANE, size),
        }
        return Measurement(figures=figures, processes=pull.processes, costs=pull.costs)


def _per_work(found: Measurement, process: str, size: int) -> float:
    """Milliseconds of CPU."""
    return found.processes[process].cpu_seconds / (size * _MEMBERS) * 1e3
