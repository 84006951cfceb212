"""Objects with the protection label cannot be deleted until the label is removed."""

from __future__ import annotations

from karmada.admission.context import Context, Refusal
from karmada.api.well_known import DELETION_PROTECTED, DELETION_PROTECTED_ALWAYS
from karmada.kube.objects.errors import FieldError
from karmada.kube.objects.types import Obj

REFUSAL = f"This resource is protected, please make sure to remove the label: {DELETION_PROTECTED}"


def is_protected(obj: Obj) -> bool:
    labels = obj["metadata"].get("labels")
    return bool(labels) and labels.get(DELETION_PROTECTED) == DELETION_PROTECTED_ALWAYS


def validate(_obj: Obj | None, old: Obj | None, _context: Context) -> list[FieldError]:
    if old is not None and is_protected(old):
        raise Refusal(REFUSAL)
    return []
