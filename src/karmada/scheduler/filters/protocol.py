"""The interface of filters. There are two sorts, by what the answer depends on.

A `ClusterFilter` looks at one cluster at a time, and its answers are kept: they hold for all requests for which `key`
is the same, until the cluster changes in the respect that `facet` names. A `BindingFilter` is called anew for every
request and answers for all clusters at once, by name.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from karmada.kube.objects.types import Obj
from karmada.scheduler.request import Request

if TYPE_CHECKING:
    from karmada.scheduler.fleet import Facet

PASSES = ""


@runtime_checkable
class ClusterFilter(Protocol):
    name: str
    spares_targets: bool
    """True if clusters that the resource is in already pass unseen."""
    facet: Facet
    """The part of a cluster that is looked at; Facet.ANY for all of it."""

    def key(self, request: Request) -> Hashable:
        """Return the part of the request that matters; equal keys must get equal answers."""
        ...

    def check(self, request: Request, cluster: Obj) -> str:
        """Return why a cluster does not pass; "" if it does."""
        ...


class Refusal(NamedTuple):
    """Clusters that are refused: these, or, if `others`, all but these."""

    reason: str
    names: Collection[str]
    others: bool = False

    def refuses(self, name: str) -> bool:
        return (name in self.names) is not self.others


@runtime_checkable
class BindingFilter(Protocol):
    name: str
    spares_targets: bool

    def refusal(self, request: Request) -> Refusal | None:
        """Return which clusters do not pass, and why; None if all do."""
        ...


Filter = ClusterFilter | BindingFilter
