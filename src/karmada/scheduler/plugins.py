"""The parts of scheduling that can be switched: those that are built in, and those that other packages bring along.

A package brings a filter, a score, a division or an estimator by an entry point in one of the groups below, which names
a class (or function) that is called without arguments. Names of filters and scores are switched by the --plugins flag;
what other packages bring is switched by it, too. Two that are called the same are an error, except that what is built
in may be both a filter and a score. Filters run in the order: built in first, then by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from karmada.loading import entry_points
from karmada.scheduler.meter import NO_METRICS, Meter

if TYPE_CHECKING:
    from karmada.scheduler.algorithm import Profile
    from karmada.scheduler.estimators.protocol import Estimator
    from karmada.scheduler.filters.protocol import Filter

FILTERS = "karmada.scheduler.filters"
SCORES = "karmada.scheduler.ranking"
DIVISIONS = "karmada.scheduler.divisions"
ESTIMATORS = "karmada.scheduler.estimators"
GROUPS = (FILTERS, SCORES, DIVISIONS, ESTIMATORS)
EVERYTHING = "*"

Factory = Callable[[], Any]


class PluginError(ValueError):
    """Plugins that cannot be used together, or at all."""


@dataclass(slots=True)
class Registry:
    """Plugins by group and name."""

    plugins: dict[str, dict[str, Any]] = field(default_factory=lambda: {group: {} for group in GROUPS})
    always: set[str] = field(default_factory=set)
    """Names that are not switched."""

    def add(self, group: str, plugin: Any, *, always: bool = False) -> None:
        name = getattr(plugin, "name", None)
        if not isinstance(name, str) or not name:
            raise PluginError(f"a plugin of the group {group} has no name")
        if name in self.plugins[group]:
            raise PluginError(f"a plugin named {name} already exists")
        if not isinstance(plugin, _PROTOCOLS[group]()):
            raise PluginError(f"the plugin {name} does not have what a plugin of the group {group} needs")
        self.plugins[group][name] = plugin
        if always:
            self.always.add(name)

    @property
    def names(self) -> list[str]:
        found = {name: None for group in GROUPS for name in self.plugins[group] if name not in self.always}
        return list(found)

    def enabled(self, group: str, names: Iterable[str]) -> list[Any]:
        wanted = self.always.union(names)
        return [plugin for name, plugin in self.plugins[group].items() if name in wanted]


def _filters() -> tuple[type, ...]:
    from karmada.scheduler.filters.protocol import BindingFilter, ClusterFilter

    return ClusterFilter, BindingFilter


def _scores() -> tuple[type, ...]:
    from karmada.scheduler.ranking import Score

    return (Score,)


def _divisions() -> tuple[type, ...]:
    from karmada.scheduler.assignment import Division

    return (Division,)


def _estimators() -> tuple[type, ...]:
    from karmada.scheduler.estimators.protocol import LocalEstimator, RemoteEstimator

    return LocalEstimator, RemoteEstimator


_PROTOCOLS: dict[str, Callable[[], tuple[type, ...]]] = {
    FILTERS: _filters,
    SCORES: _scores,
    DIVISIONS: _divisions,
    ESTIMATORS: _estimators,
}


def switched(flag: Sequence[str], registered: Sequence[str]) -> list[str]:
    """Return the names that the values of --plugins leave on, in the order they are registered.

    `*` stands for all and counts before anything else; then a name switches on and a name after dashes switches off,
    one after the other. Switching off does nothing while nothing is on.
    """
    on = set(registered) if EVERYTHING in flag else set()
    for entry in flag:
        if entry in registered:
            on.add(entry)
        elif entry.startswith("-") and on:
            on.discard(entry.lstrip("-"))
    return [name for name in registered if name in on]


def builtin(*, workload_affinity: bool = False) -> Registry:
    """Return the filters, scores and divisions that are built in."""
    from karmada.scheduler import assignment, ranking
    from karmada.scheduler.filters import builtin as filters
    from karmada.scheduler.filters.workload_affinity import WorkloadAffinity, WorkloadAntiAffinity

    registry = Registry()
    found: list[Filter] = [
        filters.ApiEnablement(),
        filters.TaintToleration(),
        filters.ClusterAffinity(),
        filters.SpreadConstraint(),
        filters.ClusterEviction(),
    ]
    if workload_affinity:
        found += [WorkloadAffinity(), WorkloadAntiAffinity()]
    for one in found:
        registry.add(FILTERS, one)
    for score in (ranking.ClusterAffinity(), ranking.ClusterLocality()):
        registry.add(SCORES, score)
    for division in (
        assignment.Duplicated(),
        assignment.Aggregated(),
        assignment.DynamicWeight(),
        assignment.StaticWeight(),
    ):
        registry.add(DIVISIONS, division, always=True)
    return registry


def discover(registry: Registry) -> Registry:
    """Add what other packages bring along. Raises PluginError."""
    for group in GROUPS:
        for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
            factory: Factory = entry.load()
            plugin = factory()
            name = getattr(plugin, "name", None)
            if any(name in plugins for plugins in registry.plugins.values()):
                raise PluginError(f"a plugin named {name} already exists")
            registry.add(group, plugin)
    return registry


def profile_of(
    registry: Registry,
    flag: Sequence[str] = (EVERYTHING,),
    *,
    components: bool = False,
    propagate_empty: bool = False,
    meter: Meter = NO_METRICS,
) -> Profile:
    """Return what is switched on. Divisions of other packages are tried before those that are built in."""
    from karmada.scheduler.algorithm import Profile
    from karmada.scheduler.candidates import FilterSet

    names = switched(flag, registry.names)
    divisions = registry.enabled(DIVISIONS, names)
    divisions.sort(key=lambda one: one.name in registry.always)
    return Profile(
        FilterSet(registry.enabled(FILTERS, names)),
        registry.enabled(SCORES, names),
        divisions,
        components=components,
        propagate_empty=propagate_empty,
        meter=meter,
    )


def estimators_of(registry: Registry, flag: Sequence[str] = (EVERYTHING,)) -> list[Estimator]:
    """Return the estimators of other packages that are switched on."""
    return registry.enabled(ESTIMATORS, switched(flag, registry.names))


def builtin_profile() -> Profile:
    return profile_of(builtin())
