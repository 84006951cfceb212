"""PodDisruptionBudgets, and the decision whether a Pod may be evicted under them.

`evict` is pure: from the Pod and the budgets that select it, it decides what the eviction endpoint must do. The caller
stores the reduced budget before it deletes the Pod, with a compare-and-swap, so that two evictions never use the same
disruption.
"""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.kinds import checks
from karmada.kube.kinds.filling import set_zero
from karmada.kube.kinds.pods import TERMINAL, is_ready
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import (
    ApiError,
    FieldError,
    FieldErrors,
    Forbidden,
    TooManyRequests,
    invalid,
    not_supported,
)
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.meta import get_condition, set_condition
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj

VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
TOO_MANY_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
RETRY_AFTER = 10
MAX_DISRUPTED = 2000
_BUDGETS = GroupResource("policy", "poddisruptionbudget")


def validate_budget(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        errors.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for key in ("minAvailable", "maxUnavailable"):
        checks.int_or_percent(errors, f"spec.{key}", spec.get(key))
        checks.at_most_hundred_percent(errors, f"spec.{key}", spec.get(key))
    checks.label_selector(errors, "spec.selector", spec.get("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        errors.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget")))
    return errors


def validate_budget_status(obj: Obj, _old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    counters = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    checks.non_negative(errors, "status", obj.get("status") or {}, *counters)
    return errors


POD_DISRUPTION_BUDGET = Strategy(
    prepare_create=lambda obj: set_zero(obj, "currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"),
    validate=validate_budget,
    validate_status=validate_budget_status,
    generation=lambda obj: obj.get("spec"),
    unconditional_update=False,
)


def evict(pod: Obj, budgets: Iterable[Obj], now: float) -> Obj | None:
    """Return whether this Pod may be evicted; `budgets` are those of its namespace, or of these those that select it.

    Returns the budget to store first (None: no budget changes); an ApiError when the eviction is refused.
    """
    status = pod.get("status") or {}
    if status.get("phase") in (*TERMINAL, "Pending") or pod["metadata"].get("deletionTimestamp"):
        return None
    labels = pod["metadata"].get("labels")
    matching = [budget for budget in budgets if selects(budget, labels)]
    if not matching:
        return None
    if len(matching) > 1:
        raise ApiError(TOO_MANY_BUDGETS, code=500)
    [budget] = matching
    if not is_ready(pod) and _lets_unready_go(budget):
        return None
    return _take_from(budget, pod["metadata"]["name"], now)


def selects(budget: Obj, labels: Obj | None) -> bool:
    """Return whether a Pod with these labels, in the same namespace, is under a budget."""
    selector = (budget.get("spec") or {}).get("selector")
    return selector is not None and labels_from(selector).matches(labels)


def _lets_unready_go(budget: Obj) -> bool:
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy") or 0
    return desired > 0 and (status.get("currentHealthy") or 0) >= desired


def _take_from(budget: Obj, pod_name: str, now: float) -> Obj:
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    allowed = status.get("disruptionsAllowed") or 0
    if (status.get("observedGeneration") or 0) < (budget["metadata"].get("generation") or 0):
        raise _violation(f"The disruption budget {name} is still being processed by the server.", RETRY_AFTER)
    if allowed < 0:
        raise Forbidden.of(_BUDGETS, name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > MAX_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise Forbidden.of(_BUDGETS, name, why)
    if allowed == 0:
        raise _violation(_why_none(name, status))
    taken: Obj = copy_json(budget)
    taken["status"]["disruptionsAllowed"] = allowed - 1
    taken["status"].setdefault("disruptedPods", {})[pod_name] = rfc3339(now)
    if allowed == 1:
        condition = {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": status.get("observedGeneration") or 0,
        }
        taken["status"]["conditions"] = set_condition(status.get("conditions"), condition, now)
    return taken


def _why_none(name: str, status: Obj) -> str:
    condition = get_condition(status.get("conditions"), "DisruptionAllowed")
    if condition is not None and condition.get("reason") == "SyncFailed":
        message = condition.get("message") or ""
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    desired, current = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
    if current > desired:
        return f"The disruption budget {name} does not allow evicting pods currently"
    return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"


def _violation(why: str, retry_after: int | None = None) -> TooManyRequests:
    """`retry_after` makes clients retry by themselves; without it they report the error first."""
    causes = [{"reason": "DisruptionBudget", "message": why}]
    return TooManyRequests(VIOLATES, details={"causes": causes}, retry_after=retry_after)
