"""Follow-ups of controllers in this process, folded into the create that they follow (see kube/runtime/follow_ups).

The stored object is what the create and the controller's own writes would have left, but for the generation and the
resourceVersion, which count one write.
"""

from __future__ import annotations

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.types import Obj
from karmada.kube.patch.managedfields import update_managers
from karmada.kube.patch.mergepatch import apply_merge_patch
from karmada.kube.runtime.follow_ups import FollowUp


def fold(resource: Resource, obj: Obj, follow_up: FollowUp, now: str) -> None:
    """In place: make the changes in a new object that has everything but its resourceVersion."""
    before = {**obj, "metadata": {**obj["metadata"]}}
    if follow_up.changes:
        obj.update(apply_merge_patch(obj, follow_up.changes))
        _track(resource, before, obj, follow_up.manager, now, "")
    if follow_up.status is not None and resource.has_status:
        before = {**obj, "metadata": {**obj["metadata"]}}
        obj["status"] = follow_up.status
        _track(resource, before, obj, follow_up.manager, now, "status")


def _track(resource: Resource, before: Obj, after: Obj, manager: str, now: str, subresource: str) -> None:
    entries = update_managers(
        before,
        after,
        resource.schema(),
        manager=manager,
        api_version=resource.gvk.api_version,
        now=now,
        subresource=subresource,
        custom=resource.custom,
        reset=resource.reset_of(subresource),
    )
    if entries:
        after["metadata"]["managedFields"] = entries
