"""The load model: what the pods of a cluster use, by settings made while it runs and by annotations.

Nothing is computed here: a `Reading` (in reading.py) does that on request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import NODES, PODS
from karmada.kube.objects.selectors import LabelSelector, parse_labels
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.podcontrol import BY_CONTROLLER, BY_NODE, index_by_controller, index_by_node
from karmada.kube.sim.metrics.amounts import ANNOTATION, Amount, Demand, annotated, demand_of, nano_at

WORKLOADS = {
    "Deployment": GVR("apps", "v1", "deployments"),
    "ReplicaSet": GVR("apps", "v1", "replicasets"),
    "StatefulSet": GVR("apps", "v1", "statefulsets"),
    "DaemonSet": GVR("apps", "v1", "daemonsets"),
    "Job": GVR("batch", "v1", "jobs"),
}
BY_LOAD = "load"


def index_by_load(obj: Obj) -> Iterable[str]:
    text = meta.annotations(obj).get(ANNOTATION)
    return (text,) if text else ()


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A target and its load. An empty part of the target matches everything.

    `kind` and `name` name a workload anywhere above the pods, a Pod, or (for `object`) any object at all.
    """

    namespace: str = ""
    kind: str = ""
    name: str = ""
    selector: str = ""
    load: dict[str, Amount] = {}
    """Load by word, as in the annotation: cpu, memory, requests, total-…, container, jitter, or a custom metric."""
    object: dict[str, Amount] = {}
    """Custom metrics of the target itself, by name."""
    external: dict[str, Amount] = {}
    """Metrics of something outside the cluster, by name, seen from `namespace` (empty: from every one)."""
    labels: dict[str, str] = {}
    """The labels of the series that custom and external metrics come from."""
    since: float = 0.0
    """When it was made, in seconds since the epoch; 0: now."""


class Rule(NamedTuple):
    setting: Setting
    demand: Demand
    selector: LabelSelector
    exactness: int


class ExternalValue(NamedTuple):
    labels: dict[str, str]
    nano: int


class LoadModel:
    def __init__(self, context: Context) -> None:
        informers = context.informers
        self.clock = context.clock
        self.seed = context.profile.seed
        self.first_sample = context.profile.first_sample
        self.pods = informers.of(
            PODS, indexes={BY_CONTROLLER: index_by_controller, BY_NODE: index_by_node, BY_LOAD: index_by_load}
        )
        self.nodes = informers.of(NODES)
        self.workloads: dict[str, Informer] = {
            kind: informers.of(gvr, indexes={BY_CONTROLLER: index_by_controller, BY_LOAD: index_by_load})
            for kind, gvr in WORKLOADS.items()
        }
        self.rules: dict[str, Rule] = {}
        self.generation = 0
        """Rises with every change of the settings."""

    # settings

    def set(self, name: str, setting: Setting) -> None:
        """Set or replace a setting; ValueError when it is invalid."""
        demand = demand_of(setting.load)
        for part in (setting.object, setting.external):
            demand_of({f"total-{metric}": amount for metric, amount in part.items()})
        selector = parse_labels(setting.selector)
        if not setting.since:
            setting = msgspec.structs.replace(setting, since=self.clock.now())
        self.rules.pop(name, None)  # the youngest is the last
        self.rules[name] = Rule(setting, demand, selector, _exactness(setting))
        self.generation += 1

    def remove(self, name: str) -> bool:
        """Return whether there was one of that name."""
        if self.rules.pop(name, None) is None:
            return False
        self.generation += 1
        return True

    def settings(self) -> dict[str, Setting]:
        return {name: rule.setting for name, rule in self.rules.items()}

    # queries

    def pod_metrics(self) -> frozenset[str]:
        """Return the names of all custom metrics that pods may have."""
        names = {name for rule in self.rules.values() for name in rule.demand.metrics()}
        for informer in (self.pods, *self.workloads.values()):
            for text in informer.index_values(BY_LOAD):
                names |= annotated(text).metrics()
        return frozenset(names)

    def external(self, namespace: str, metric: str) -> list[ExternalValue]:
        now = self.clock.now()
        return [
            ExternalValue(rule.setting.labels, nano_at(rule.setting.external[metric], now - rule.setting.since))
            for rule in self.rules.values()
            if metric in rule.setting.external and rule.setting.namespace in ("", namespace)
        ]

    def external_metrics(self) -> frozenset[str]:
        return frozenset(name for rule in self.rules.values() for name in rule.setting.external)


def _exactness(setting: Setting) -> int:
    if setting.name:
        return 3 if setting.kind == "Pod" else 2
    return 1 if setting.selector else 0
