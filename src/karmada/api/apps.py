"""apps.karmada.io: requests to reschedule resources."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from karmada.api.common import Int32, Int64, Struct, Time
from karmada.api.kind import Resource, kind

V1ALPHA1 = "apps.karmada.io/v1alpha1"


class ObjectReference(Struct):
    """A resource."""

    api_version: str
    """Its group and version."""
    kind: str
    """Its kind."""
    name: str
    """Its name."""
    namespace: str = ""
    """Its namespace; none for a resource without one."""


class WorkloadRebalancerSpec(Struct):
    """Which resources."""

    workloads: Annotated[list[ObjectReference], Meta(min_length=1)]
    """The resources to reschedule."""
    ttl_seconds_after_finished: Int32 | None = None
    """How long this object is kept once all is done; for ever when absent."""


class ObservedWorkload(Struct):
    """The result for one resource."""

    workload: ObjectReference
    """The resource."""
    result: str = ""
    """Successful when rescheduling was triggered, Failed when it could not be; empty while it is retried."""
    reason: str = ""
    """Why it failed: ReferencedBindingNotFound when no policy selects it."""


class WorkloadRebalancerStatus(Struct):
    """The results."""

    observed_workloads: list[ObservedWorkload] = []
    """The result for each resource."""
    observed_generation: Int64 = 0
    """The generation that this is about."""
    finish_time: Time | None = None
    """When all was done."""


@kind(V1ALPHA1, plural="workloadrebalancers", scope="Cluster", categories=(), subresources=["status"])
class WorkloadRebalancer(Resource, kw_only=True):
    """Triggers one rescheduling of resources, as if they were new."""

    spec: WorkloadRebalancerSpec
    """Which resources."""
    status: WorkloadRebalancerStatus = field(default_factory=WorkloadRebalancerStatus)
    """The observed status."""
