"""All kinds as what the embedded server serves, without any CRD being stored.

A Resource is made from the same manifest that a stored CRD would have, so both behave alike. What differs: bindings are
converted by a function instead of a webhook, and the kinds that have no CRD in Karmada look as its API servers show
them. What else those kinds do differently (a Cluster's own rules, its proxy) is added by who serves them.
"""

from __future__ import annotations

from karmada.api.cluster import Cluster
from karmada.api.cluster_table import CLUSTERS
from karmada.api.crds import builtin_crds, crd_of
from karmada.api.kind import Resource as Kind
from karmada.api.search import ResourceRegistry
from karmada.api.work_v1alpha1 import convert_all
from karmada.kube.kinds.resource import Resource
from karmada.kube.kinds.tables.columns import PLAIN, Printer
from karmada.kube.objects.types import Obj
from karmada.kube.server.crds.compile import crd_resources

_PRINTERS: dict[str, Printer] = {Cluster.gvk.kind: CLUSTERS, ResourceRegistry.gvk.kind: PLAIN}


def karmada_resources() -> list[Resource]:
    """Every version of every kind; new ones at every call."""
    return [resource for crd in builtin_crds() for resource in _resources(crd)]


def resources_of(cls: type[Kind]) -> list[Resource]:
    """Every version of one kind."""
    return _resources(crd_of(cls))


def _resources(crd: Obj) -> list[Resource]:
    made = crd_resources(crd, convert_all)
    for resource in made:
        resource.printer = _PRINTERS.get(resource.gvk.kind)
    return made
