"""remedy.karmada.io: what is done about clusters that are not well."""

from __future__ import annotations

from typing import Literal

from karmada.api.common import ClusterNames, Struct
from karmada.api.kind import Resource, kind

V1ALPHA1 = "remedy.karmada.io/v1alpha1"


class ClusterConditionRequirement(Struct):
    """Compares one condition of a cluster."""

    condition_type: str
    """The type of the condition, such as ServiceDomainNameResolutionReady."""
    operator: Literal["Equal", "NotEqual"]
    """How it is compared."""
    condition_status: str
    """The status it is compared with: True, False or Unknown."""


class DecisionMatch(Struct):
    """One reason to act."""

    cluster_condition_match: ClusterConditionRequirement | None = None
    """A condition of the cluster; the reason does not hold for clusters without that condition."""


class RemedySpec(Struct):
    """What is done about which clusters, and when."""

    cluster_affinity: ClusterNames | None = None
    """The clusters; all when absent, none when it names none."""
    decision_matches: list[DecisionMatch] | None = None
    """Reasons, any of which is enough. When absent, it is done always; when empty, never."""
    actions: list[str] = []
    """What is done: TrafficControl sends no requests to the cluster."""


@kind(V1ALPHA1, plural="remedies", scope="Cluster")
class Remedy(Resource, kw_only=True):
    """What is done about clusters whose conditions say that they are unhealthy."""

    spec: RemedySpec
    """What is done about which clusters, and when."""
