"""The operations of a kind: a function for each, None where it is left to the native layer or not supported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from karmada.interpreter.operations import Replicas, Report
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

Needs: TypeAlias = Callable[[Obj | None], Obj | None]
"""From a pod template to ReplicaRequirements; a template that is not there is an error."""

Count: TypeAlias = Callable[[Obj, Needs], Replicas]
Components: TypeAlias = Callable[[Obj, Needs], list[Obj]]
Revise: TypeAlias = Callable[[Obj, int], Obj]
Retain: TypeAlias = Callable[[Obj, Obj], Obj]
Reflect: TypeAlias = Callable[[Obj, Obj], Obj]
"""From an object and its status, which it has, to what is reported."""
Aggregate: TypeAlias = Callable[[Obj, Sequence[Report], str], Obj]
"""From a template, reports of clusters and the time to the template with its status; there may be no reports."""
Healthy: TypeAlias = Callable[[Obj], bool]
Find: TypeAlias = Callable[[Obj], list[Obj]]
"""From a template to references, in any order and perhaps repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    gvk: GVK
    replicas: Count | None = None
    components: Components | None = None
    revise: Revise | None = None
    retain: Retain | None = None
    reflect: Reflect | None = None
    aggregate: Aggregate | None = None
    healthy: Healthy | None = None
    dependencies: Find | None = None
