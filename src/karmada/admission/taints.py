"""ClusterTaintPolicy: taints that drive resources out of clusters must be allowed by the administrator."""

from __future__ import annotations

from karmada.admission.context import Context
from karmada.api.well_known import NO_EXECUTE
from karmada.kube.objects.errors import FieldError, FieldErrors, duplicate, forbidden_field
from karmada.kube.objects.types import Obj

_NOT_ALLOWED = (
    "Configuring taint with NoExecute effect is not allowed, this capability must be explicitly enabled by "
    "administrators through command-line flags"
)


def validate(policy: Obj, _old: Obj | None, context: Context) -> list[FieldError]:
    errors = FieldErrors()
    taints = [(t.get("key") or "", t.get("effect") or "") for t in policy["spec"].get("taints") or ()]
    for index, taint in enumerate(taints):
        path = f"spec.taints[{index}]"
        key, effect = taint
        if effect == NO_EXECUTE and not context.settings.allow_no_execute_taint_policy:
            errors.append(forbidden_field(path, _NOT_ALLOWED))
        if taint in taints[index + 1 :]:
            detail = f"Duplicate taint with the same key({key}) and effect({effect}) is not allowed"
            errors.append(duplicate(path, detail))
    return errors
