"""The hook that controllers which make Works call.

An object and a cluster in, the object for that cluster and notes for its Work out. The result is emitted as events on
the object, one for each rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from karmada.api.well_known import APPLIED_CLUSTER_OVERRIDES, APPLIED_OVERRIDES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, WARNING, EventRecorder
from karmada.overrides.compiled import Rule
from karmada.overrides.engine import Applied, Overrides
from karmada.overrides.errors import OverrideError

COMPONENT: Final = "override-manager"
"""The source of the events."""
_SUCCEED: Final = "ApplyOverridePolicySucceed"
_FAILED: Final = "ApplyOverridePolicyFailed"
_NOTHING: Final[dict[str, str]] = {}


class Overridden(NamedTuple):
    """An object as it is to be in a cluster, and what its Work notes of how it became so."""

    object: Obj
    annotations: Mapping[str, str]


Override: TypeAlias = Callable[[Obj, str], Overridden]
"""(object, cluster): what override policies make of it. The object is left as it is."""


def override_with(overrides: Overrides, recorder: EventRecorder) -> Override:
    """Return the hook that overrides; the recorder is that of COMPONENT."""

    def override(obj: Obj, cluster: str) -> Overridden:
        try:
            applied = overrides.apply(obj, cluster)
        except OverrideError as error:
            _emit_applied(recorder, obj, cluster, error.applied)
            recorder.event(obj, WARNING, _FAILED, f"Apply {error.rule.policy} for cluster({cluster}) failed.")
            raise
        if applied.cluster_policies or applied.policies:
            _emit_applied(recorder, obj, cluster, (*applied.cluster_policies, *applied.policies))
        return Overridden(applied.manifest, work_annotations(applied))

    return override


def _emit_applied(recorder: EventRecorder, obj: Obj, cluster: str, rules: Iterable[Rule]) -> None:
    for rule in rules:
        recorder.event(obj, NORMAL, _SUCCEED, f"Apply {rule.policy} for cluster({cluster}) succeed.")


def work_annotations(applied: Applied) -> Mapping[str, str]:
    """For the Work of a manifest; empty when nothing was applied."""
    if not applied.cluster_policies and not applied.policies:
        return _NOTHING
    both = ((APPLIED_CLUSTER_OVERRIDES, applied.cluster_policies), (APPLIED_OVERRIDES, applied.policies))
    return {key: _joined(rules) for key, rules in both if rules}


def _joined(rules: Iterable[Rule]) -> str:
    in_order = sorted(rules, key=lambda rule: rule.policy.name)
    return f"[{','.join(rule.record for rule in in_order)}]"
