"""A hook: which rule defaults or validates which kind; and running it, in-process or as a webhook.

The errors of a rule become one refusal.

Rules take it for granted that an object has the shape of its kind. Where one does not (nothing has checked that before
a mutating hook), a rule raises; only then the object is checked against the type of its kind, so that a well-formed one
never pays for the check, and the refusal says what is wrong with the shape.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from karmada.admission.context import BAD_REQUEST, CREATE, UPDATE, Context, Refusal, in_one_text
from karmada.admission.limits import GROUPS, limit_errors
from karmada.kube.objects.errors import FieldError
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.api.kind import Resource

Mutate: TypeAlias = Callable[[Obj, "Obj | None", Context], None]
"""(obj, old, context): completes the object in place."""
Found: TypeAlias = list[FieldError]
Validate: TypeAlias = Callable[[Obj, "Obj | None", Context], "Found | Awaitable[Found]"]
"""(obj, old, context): the errors; awaited where other objects are read. `obj` is {} for a deletion."""


class Rule:
    """A function of this package, loaded when it is first called."""

    __slots__ = ("_function", "place")

    def __init__(self, module: str, name: str) -> None:
        self.place = (f"karmada.admission.{module}", name)
        self._function: Callable[[Obj, Obj | None, Context], Any] | None = None

    def __call__(self, obj: Obj, old: Obj | None, context: Context) -> Any:
        function = self._function
        if function is None:
            module, name = self.place
            function = self._function = getattr(import_module(module), name)
        return function(obj, old, context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    name: str
    path: str
    resource: GroupResource
    """Resource it is for; "*" in "*" for all."""
    operations: tuple[str, ...] = (CREATE, UPDATE)
    mutate: Mutate | None = None
    validate: Validate | None = None
    seconds: int = 3
    side_effects: str = "None"
    label: str = ""
    """Only objects that carry this label, if one is given."""
    older: bool = False


_WRITTEN_BY_USERS = (*GROUPS, "config.karmada.io")
"""Groups of objects that may be large, and of which few are written."""
T = TypeVar("T")
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
        found = await _aside_if_large(hook, obj, partial(_errors, hook, obj, old, context))
        errors = found if isinstance(found, list) else await found
    except _MALFORMED as error:
        _check_shape(obj, error)
        raise
    if errors:
        raise Refusal(in_one_text(errors))


async def _aside_if_large(hook: Hook, obj: Obj, work: Callable[[], T]) -> T:
    if hook.resource.group not in _WRITTEN_BY_USERS:
        return work()
    from karmada.kube.runtime.aside import ASIDE, is_large  # with asyncio, which a process may not need

    return await ASIDE.run(work) if is_large(obj) else work()


def _errors(hook: Hook, obj: Obj, old: Obj | None, context: Context) -> list[FieldError] | Awaitable[list[FieldError]]:
    assert hook.validate is not None
    errors = limit_errors(obj, old) if hook.resource.group in GROUPS else []
    return errors or hook.validate(obj, old, context)


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
