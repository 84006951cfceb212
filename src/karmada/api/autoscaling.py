"""autoscaling.karmada.io: replicas over all clusters by load or by schedule."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, field

from karmada.api.common import Int32, Struct, Time, builtin, default
from karmada.api.kind import AGE, Column, Resource, kind
from karmada.kube.objects.types import Obj

V1ALPHA1 = "autoscaling.karmada.io/v1alpha1"

_AUTOSCALING = "io.k8s.api.autoscaling.v2."
MetricSpec: TypeAlias = Annotated[Obj, builtin(_AUTOSCALING + "MetricSpec")]
Behavior: TypeAlias = Annotated[Obj, builtin(_AUTOSCALING + "HorizontalPodAutoscalerBehavior")]
AutoscalerStatus: TypeAlias = Annotated[Obj, builtin(_AUTOSCALING + "HorizontalPodAutoscalerStatus")]


class CrossVersionObjectReference(Struct):
    """What is scaled."""

    kind: str
    """Its kind."""
    name: str
    """Its name."""
    api_version: str = ""
    """Its group and version."""


class FederatedHPASpec(Struct):
    """What is scaled, and by what."""

    scale_target_ref: CrossVersionObjectReference
    """What is scaled: anything with a scale subresource."""
    max_replicas: Int32
    """The most replicas over all clusters."""
    min_replicas: Int32 | None = None
    """The fewest replicas over all clusters; 1 by default."""
    metrics: list[MetricSpec] = []
    """Metrics to scale by; the one that yields the most replicas is used. The default is 80 percent of the CPU that
    Pods request."""
    behavior: Behavior | None = None
    """How fast the number of replicas may change."""


_TARGET_COLUMNS = (
    Column("REFERENCE-KIND", ".spec.scaleTargetRef.kind"),
    Column("REFERENCE-NAME", ".spec.scaleTargetRef.name"),
)


@kind(
    V1ALPHA1,
    plural="federatedhpas",
    scope="Namespaced",
    short=["fhpa"],
    columns=[
        *_TARGET_COLUMNS,
        Column("MINPODS", ".spec.minReplicas", "integer"),
        Column("MAXPODS", ".spec.maxReplicas", "integer"),
        Column("REPLICAS", ".status.currentReplicas", "integer"),
        AGE,
    ],
    subresources=["status"],
)
class FederatedHPA(Resource, kw_only=True):
    """Scales a resource over all clusters by its load."""

    spec: FederatedHPASpec
    """What is scaled, and by what."""
    status: AutoscalerStatus | None = None
    """What was measured and done last."""


class CronFederatedHPARule(Struct):
    """What happens when."""

    name: Annotated[str, Meta(min_length=1, max_length=32)]
    """The name of the rule, unique among its siblings."""
    schedule: str
    """When, in the form of cron: minute, hour, day of the month, month, day of the week."""
    target_replicas: Int32 | None = None
    """How many replicas there shall be; for everything but a FederatedHPA."""
    target_min_replicas: Int32 | None = None
    """The new minReplicas of a FederatedHPA."""
    target_max_replicas: Int32 | None = None
    """The new maxReplicas of a FederatedHPA."""
    suspend: Annotated[bool, default(False)] = False
    """Whether the rule is left out for now."""
    time_zone: str | None = None
    """The time zone of the schedule, such as Europe/Vienna; that of the controller when absent."""
    successful_history_limit: Annotated[Int32, Meta(ge=1, le=32)] = 3
    """How many successful executions the status remembers."""
    failed_history_limit: Annotated[Int32, Meta(ge=0, le=32)] = 3
    """How many failed executions the status remembers."""


class CronFederatedHPASpec(Struct):
    """What is scaled, and when."""

    scale_target_ref: CrossVersionObjectReference
    """What is scaled: a FederatedHPA, or anything with a scale subresource."""
    rules: list[CronFederatedHPARule]
    """What happens when."""


class SuccessfulExecution(Struct):
    """A rule that was carried out."""

    schedule_time: Time
    """When it was due."""
    execution_time: Time
    """When it was carried out."""
    applied_replicas: Int32 | None = None
    """The replicas that were set."""
    applied_max_replicas: Int32 | None = None
    """The maxReplicas that were set."""
    applied_min_replicas: Int32 | None = None
    """The minReplicas that were set."""


class FailedExecution(Struct):
    """A rule that could not be carried out."""

    schedule_time: Time
    """When it was due."""
    execution_time: Time
    """When it was tried."""
    message: str
    """What went wrong."""


class ExecutionHistory(Struct):
    """The executions of one rule."""

    rule_name: str
    """The rule."""
    next_execution_time: Time | None = None
    """When it is due next; absent while it is suspended."""
    successful_executions: list[SuccessfulExecution] = []
    """When it was carried out, the latest first."""
    failed_executions: list[FailedExecution] = []
    """When it could not be carried out, the latest first."""


class CronFederatedHPAStatus(Struct):
    """The executions of the rules."""

    execution_histories: list[ExecutionHistory] = []
    """The executions of each rule."""


@kind(
    V1ALPHA1,
    plural="cronfederatedhpas",
    scope="Namespaced",
    short=["cronfhpa"],
    columns=[*_TARGET_COLUMNS, AGE],
    subresources=["status"],
)
class CronFederatedHPA(Resource, kw_only=True):
    """Scales a resource at given times."""

    spec: CronFederatedHPASpec
    """What is scaled, and when."""
    status: CronFederatedHPAStatus = field(default_factory=CronFederatedHPAStatus)
    """The observed status."""
