"""All scenarios by name, in the order in which they run.

Each is imported when it is used, so that none weighs on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from benchmarks.scenario import Scenario

_WHERE = {
    "server": "api_server:ApiServer",
    "informers": "informers:Informers",
    "fleet": "fleet:SimulatedFleet",
    "clusters": "clusters:Clusters",
    "clusters.wide": "wide:Wide",
    "clusters.thousand": "wide:Thousand",
    "large-member": "large_member:LargeMember",
    "estimator": "estimator:Estimator",
    "interpreter": "interpreter:Scripts",
    "scheduling": "scheduling:Scheduling",
    "scheduling.estimators": "scheduling_estimators:WithEstimators",
    "scheduler": "scheduler:Scheduler",
    "scheduler.wide": "scheduler:Wide",
    "failover": "failover:Failover",
    "services": "services:Services",
    "autoscaling": "autoscaling:Autoscaling",
    "search": "search:Search",
    "search.query": "search_query:SearchQuery",
    "dashboard": "dashboard:Dashboard",
    "dashboard.large": "dashboard:Large",
    "propagation.latency": "propagation.latency:Latency",
    "propagation.deployments": "propagation.rollout:Deployments",
    "propagation.wide": "propagation.rollout:Wide",
    "propagation.configmaps": "propagation.rollout:ConfigMaps",
    "propagation.overrides": "propagation.rollout:Overridden",
    "propagation.customized": "propagation.customized:Customized",
    "propagation.pull": "propagation.pull:Pull",
    "propagation.updates": "propagation.updates:Updates",
    "propagation.deletion": "propagation.deletion:Deletion",
    "workers": "workers:Workers",
    "restart": "restart:Restart",
    "works": "works:Works",
    "works.million": "works:Million",
    "cli": "cli:CommandLine",
    "memory": "memory:Memory",
}
NAMES = tuple(_WHERE)
BY_NAME_ONLY = frozenset({"clusters.thousand", "dashboard.large", "works.million"})
"""They take too long, or need too much memory, to be among all or in a family."""


class UnknownScenario(ValueError):
    """A name that none has."""


def scenario(name: str) -> Scenario:
    module, _, attribute = _WHERE[name].partition(":")
    found: Scenario = getattr(import_module(f"benchmarks.scenarios.{module}"), attribute)()
    return found


def selected(names: Sequence[str]) -> list[Scenario]:
    """For no name all but the largest; a name stands for the scenario and for the family it is the first word of."""
    for name in names:
        if not any(_means(name, known) for known in NAMES):
            raise UnknownScenario(f'unknown scenario "{name}" (known: {", ".join(NAMES)})')
    return [scenario(known) for known in NAMES if _is_selected(known, names)]


def _is_selected(known: str, names: Sequence[str]) -> bool:
    if known in BY_NAME_ONLY:
        return known in names
    return not names or any(_means(name, known) for name in names)


def _means(name: str, known: str) -> bool:
    return known == name or known.startswith(f"{name}.")
