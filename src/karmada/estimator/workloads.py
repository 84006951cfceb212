"""Replicas of a workload for which the member's scheduler finds no node.

They are pods of the ReplicaSet that has the Deployment's current template. Of templates a digest is kept, in which the
label that makes them differ is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import orjson

from karmada.estimator.kept import identity
from karmada.estimator.snapshot import Snapshot
from karmada.estimator.terms import EstimateError
from karmada.kube.objects.gvrs import DEPLOYMENTS, REPLICA_SETS
from karmada.kube.objects.meta import controller_of
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key

_KIND = "Deployment"
_TEMPLATE_HASH = "pod-template-hash"
_BY_CONTROLLER = "controller"


def slim_deployment(deployment: Obj) -> Obj:
    spec = deployment.get("spec") or {}
    return {
        "metadata": identity(deployment),
        "selector": spec.get("selector"),
        "template": digest(spec.get("template") or {}),
    }


def slim_replica_set(replica_set: Obj) -> Obj:
    spec, owner = replica_set.get("spec") or {}, controller_of(replica_set)
    return {
        "metadata": identity(replica_set),
        "labels": replica_set["metadata"].get("labels"),
        "created": replica_set["metadata"].get("creationTimestamp") or "",
        "controller": owner["uid"] if owner else "",
        "selector": spec.get("selector"),
        "template": digest(spec.get("template") or {}),
    }


def digest(template: Obj) -> bytes:
    """Equal for templates that make the same pods."""
    metadata = template.get("metadata") or {}
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != _TEMPLATE_HASH}
    same = _without_empty({**template, "metadata": {**metadata, "labels": labels}})
    return blake2b(orjson.dumps(same, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _without_empty(value: Any) -> Any:
    """Kubernetes does not distinguish what is absent from what is empty."""
    if isinstance(value, dict):
        kept = {name: _without_empty(one) for name, one in value.items()}
        return {name: one for name, one in kept.items() if one is not None and one != {} and one != []}
    return [_without_empty(one) for one in value] if isinstance(value, list) else value


def _controller(replica_set: Obj) -> Iterable[str]:
    return (replica_set["controller"],)


class Workloads:
    """The member's Deployments and their ReplicaSets."""

    def __init__(self, informers: Informers) -> None:
        self._deployments = informers.of(DEPLOYMENTS, shape=Shape.summary(slim_deployment))
        self._replica_sets = informers.of(
            REPLICA_SETS, shape=Shape.summary(slim_replica_set), indexes={_BY_CONTROLLER: _controller}
        )

    @property
    def informers(self) -> tuple[Informer, Informer]:
        return self._deployments, self._replica_sets

    def deployment(self, resource: Obj) -> Obj:
        """EstimateError: there is none, or it is of another kind."""
        namespace, name = resource.get("namespace") or "", resource.get("name") or ""
        if resource.get("kind") != _KIND:
            raise EstimateError(f"kind({resource.get('kind') or ''}) of workload({namespace}/{name}) is not supported")
        found = self._deployments.get(Key(namespace, name))
        if found is None:
            raise EstimateError(f'deployments.apps "{name}" not found')
        return found

    def unschedulable(self, deployment: Obj, snapshot: Snapshot, before: float) -> int:
        """Return how many of its pods have been unschedulable since a time before this one."""
        current = self._current(deployment)
        if current is None:
            return 0
        selector = labels_from(current["selector"])
        waiting = snapshot.unschedulable_of(current["metadata"]["uid"])
        return sum(1 for pod in waiting if pod.since < before and selector.matches(pod.labels))

    def _current(self, deployment: Obj) -> Obj | None:
        """Return the oldest ReplicaSet with the Deployment's template."""
        selector = labels_from(deployment["selector"])
        owned = self._replica_sets.by_index(_BY_CONTROLLER, deployment["metadata"]["uid"])
        alike = [one for one in owned if one["template"] == deployment["template"] and selector.matches(one["labels"])]
        return min(alike, key=lambda one: (one["created"], one["metadata"]["name"]), default=None)
