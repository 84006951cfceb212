"""What a Work carries."""

from __future__ import annotations

from typing import TypeAlias

from karmada.kube.objects import meta
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj

Identity: TypeAlias = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object, in whatever version."""


def manifests_of(work: Obj) -> list[Obj]:
    return ((work.get("spec") or {}).get("workload") or {}).get("manifests") or []


def identity_of(obj: Obj) -> Identity:
    gvk = gvk_of(obj)
    return gvk.group, gvk.kind, *meta.key(obj)


def carries(work: Obj, identity: Identity) -> bool:
    """Return whether one of the manifests of a Work is that of this object."""
    return any(isinstance(manifest, dict) and identity_of(manifest) == identity for manifest in manifests_of(work))
