"""One reconcile of an autoscaler: the conditions it sets, and the status it ends with.

Conditions have the same texts for every autoscaler, so each has its method here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from karmada.kube.autoscaling.behavior import Bounds, Decision
from karmada.kube.autoscaling.proposals import Proposals
from karmada.kube.objects.meta import set_condition
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj

ABLE, ACTIVE, LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
ABOVE_MAXIMUM = "Current number of replicas above Spec.MaxReplicas"
BELOW_MINIMUM = "Current number of replicas below Spec.MinReplicas"
SELECTOR_REQUIRED = ("SelectorRequired", "selector is required")
"""The event of a scale without a selector; its condition has `NO_SELECTOR`."""
NO_SELECTOR = "the HPA target's scale is missing a selector"

Action: TypeAlias = Literal["none", "scale_up", "scale_down"]


def action_of(before: int, after: int) -> Action:
    if before == after:
        return "none"
    return "scale_up" if after > before else "scale_down"


def unparsable(error: ValueError) -> str:
    """Return what is wrong with a selector."""
    return f"couldn't convert selector into a corresponding internal selector object: {error}"


@dataclass(slots=True)
class Round:
    """`hpa` is shared and read-only; `status` is that of the end of the round."""

    hpa: Obj
    now: float
    status: Obj = field(init=False)
    current: int = field(init=False)
    desired: int = field(init=False)
    readings: list[Obj] | None = None
    """Present values of the metrics; None leaves what the status has from before."""
    action: Action = "none"
    """Change that was made to the target."""

    def __post_init__(self) -> None:
        self.status = dict(self.hpa.get("status") or {})
        self.current = self.status.get("currentReplicas", 0)
        self.desired = self.status.get("desiredReplicas", 0)

    @property
    def spec(self) -> Obj:
        spec: Obj = self.hpa["spec"]
        return spec

    @property
    def bounds(self) -> Bounds:
        low = self.spec.get("minReplicas")
        return Bounds(1 if low is None else low, self.spec["maxReplicas"])

    def finished(self) -> Obj:
        status = {**self.status, "currentReplicas": self.current, "desiredReplicas": self.desired}
        if self.readings is not None:
            status["currentMetrics"] = self.readings
            if not self.readings:
                del status["currentMetrics"]
        return status

    # conditions

    def condition(self, kind: str, value: bool, reason: str, message: str) -> None:
        new = {"type": kind, "status": "True" if value else "False", "reason": reason, "message": message}
        self.status["conditions"] = set_condition(self.status.get("conditions"), new, self.now)

    def unable(self, reason: str, what: str, problem: str) -> None:
        """AbleToScale is False; `what` could not be done."""
        self.condition(ABLE, False, reason, f"the HPA controller was unable to {what}: {problem}")

    def got_scale(self) -> None:
        message = "the HPA controller was able to get the target's current scale"
        self.condition(ABLE, True, "SucceededGetScale", message)

    def rescaled(self) -> None:
        """To the desired replicas."""
        message = f"the HPA controller was able to update the target scale to {self.desired}"
        self.condition(ABLE, True, "SucceededRescale", message)
        self.status["lastScaleTime"] = rfc3339(self.now)
        self.action = action_of(self.current, self.desired)

    def disabled(self) -> None:
        message = "scaling is disabled since the replica count of the target is zero"
        self.condition(ACTIVE, False, "ScalingDisabled", message)

    def inactive(self, reason: str, message: str) -> None:
        self.condition(ACTIVE, False, reason, message)

    def computed(self, found: Proposals, remark: str = "") -> None:
        """ScalingActive by what the metrics propose; `remark` follows the name of the metric that was used."""
        if found.best is None or found.blocked:
            for first in found.failures[:1]:
                self.inactive(first.reason, f"the HPA was unable to compute the replica count: {first.problem}")
            return
        message = f"the HPA was able to successfully calculate a replica count from {found.best.name}{remark}"
        self.condition(ACTIVE, True, "ValidMetricFound", message)

    def decided(self, decision: Decision) -> None:
        self.condition(ABLE, True, *decision.able)
        self.condition(LIMITED, decision.limited, *decision.limit)
        self.desired = decision.replicas

    # decisions

    def outside_bounds(self) -> str:
        """Set the desired replicas if the present ones are outside the bounds; the reason, else an empty text."""
        low, high = self.bounds
        if self.current > high:
            self.desired, self.readings = high, []
            return ABOVE_MAXIMUM
        if self.current < low:
            self.desired, self.readings = low, []
            return BELOW_MINIMUM
        return ""
