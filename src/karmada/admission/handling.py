"""Running a hook, in-process or as a webhook: the errors of its rules become one refusal.

Rules take it for granted that an object has the shape of its kind. Where one does not (nothing has checked that before
a mutating hook), a rule raises; only then the object is checked against the type of its kind, so that a well-formed one
never pays for the check, and the refusal says what is wrong with the shape.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from karmada.admission.context import BAD_REQUEST, Context, Refusal, in_one_text
from karmada.admission.limits import GROUPS, limit_errors
from karmada.admission.table import Hook
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.api.kind import Resource

_MALFORMED = (AttributeError, KeyError, IndexError, TypeError, ValueError)


def run_mutating(hook: Hook, obj: Obj, old: Obj | None, context: Context) -> None:
    """Run a mutating hook, in place."""
    assert hook.mutate is not None
    try:
        hook.mutate(obj, old, context)
    except _MALFORMED as error:
        _check_shape(obj, error)
        raise


async def run_validating(hook: Hook, obj: Obj, old: Obj | None, context: Context) -> None:
    """Run a validating hook; raises Refusal with everything that is wrong."""
    assert hook.validate is not None
    try:
        errors = limit_errors(obj, old) if hook.resource.group in GROUPS else []
        if not errors:
            found = hook.validate(obj, old, context)
            errors = found if isinstance(found, list) else await found
    except _MALFORMED as error:
        _check_shape(obj, error)
        raise
    if errors:
        raise Refusal(in_one_text(errors))


def _check_shape(obj: Obj, error: Exception) -> None:
    """Refuse an object that is not what it says it is. One that is was not to blame for the error."""
    import msgspec

    kind = _kinds().get(GVK.parse(str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")))
    if kind is not None:
        try:
            kind.of({**obj, "status": {}} if "status" in obj else obj)
        except msgspec.ValidationError as wrong:
            raise Refusal.failure(str(wrong), BAD_REQUEST) from error


@lru_cache(maxsize=1)
def _kinds() -> dict[GVK, type[Resource]]:
    from karmada.api.crds import all_kinds

    return {info.gvk: info.type for info in all_kinds()}
