"""Kyverno (kyverno.io): policies of a namespace and of the whole cluster, which are alike."""

from __future__ import annotations

from collections.abc import Sequence

from karmada.interpreter.native.fields import section
from karmada.interpreter.operations import InterpreterError, Report
from karmada.interpreter.thirdparty.aggregating import last, merged_conditions, values, with_status
from karmada.interpreter.thirdparty.common import fields_of_status, ready_because
from karmada.interpreter.thirdparty.kind import Kind
from karmada.interpreter.thirdparty.values import required_number
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

_RULES = ("validate", "generate", "mutate", "verifyimages")
_succeeded = ready_because("Succeeded")


def _healthy(obj: Obj) -> bool:
    """Older versions have a field of their own instead of a condition."""
    ready = section(obj, "status").get("ready")
    if ready is None:
        return _succeeded(obj)
    if not isinstance(ready, bool):
        raise InterpreterError(f"status.ready: expected a boolean, got {ready!r}")
    return ready


def _status(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
    """Return a new status: nothing of the template's stays."""
    if not reports:
        return obj
    counts = values(reports, "rulecount")
    return with_status(
        obj,
        {
            "autogen": last(reports, "autogen"),
            "ready": last(reports, "ready"),
            "rulecount": {
                rule: sum([required_number(count.get(rule), f"rulecount.{rule}") for count in counts])
                for rule in _RULES
            },
            "conditions": merged_conditions(reports),
        },
    )


KINDS = tuple(
    Kind(
        gvk=GVK("kyverno.io", "v1", name),
        reflect=fields_of_status("ready", "conditions", "autogen", "rulecount"),
        aggregate=_status,
        healthy=_healthy,
    )
    for name in ("ClusterPolicy", "Policy")
)
