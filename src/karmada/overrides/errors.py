"""What goes wrong in overriding: an overrider says why it cannot be applied, the engine adds where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.kube.objects.errors import ApiError

if TYPE_CHECKING:
    from karmada.overrides.compiled import Rule


class CannotApply(ValueError):
    """Why an overrider does not fit an object."""


class OverrideError(ApiError):
    """An object could not be overridden for a cluster, and nothing of it may be used.

    `rule` is the one that failed and `field` its place in the policy; `applied` are the rules that went well before it.
    """

    code = 422

    def __init__(self, rule: Rule, field: str, why: str, cluster: str, applied: tuple[Rule, ...] = ()) -> None:
        super().__init__(f"failed to apply {rule.policy} for cluster({cluster}): {field}: {why}")
        self.rule = rule
        self.field = field
        self.why = why
        self.cluster = cluster
        self.applied = applied
