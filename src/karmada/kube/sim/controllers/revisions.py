"""Revisions of a StatefulSet's or DaemonSet's template, kept as ControllerRevisions.

A revision holds the template as the strategic merge patch that brings it back, so that a rollback is sending `data` to
the workload. A template equal to that of an old revision takes the old one again and gives it the highest number: the
newest revision is always the workload's template. A new one is named by a hash of its data; if that name is taken by
something else, the workload's collision count goes into the hash, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import orjson

from karmada.kube.objects.errors import AlreadyExists
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.meta import controller_of, make_owner
from karmada.kube.objects.names import short_hash
from karmada.kube.objects.selectors import LabelSelector
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.writes import delete_if_exists
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.orphans import CLAIM_INDEXES, candidates, until_ending
from karmada.kube.sim.controllers.podcontrol import PodControl

CONTROLLER_REVISIONS = GVR("apps", "v1", "controllerrevisions")
REVISION_LABEL = "controller-revision-hash"
"""On pods: which revision they were made from."""
_TRIES = 10

Labels = Callable[[str, str], dict[str, str]]
"""From a revision's name and hash: the labels that distinguish it from its siblings."""


class Latest(NamedTuple):
    """The revision of the workload's template, and how often a hash was found taken."""

    revision: Obj
    collisions: int


def patch_of(workload: Obj) -> Obj:
    """Return the patch that gives a workload the template that this one has."""
    return {"spec": {"template": {**workload["spec"]["template"], "$patch": "replace"}}}


def template_of(revision: Obj) -> Obj:
    template: Obj = revision["data"]["spec"]["template"]
    return {key: value for key, value in template.items() if key != "$patch"}


def hash_of(data: Obj, collisions: int) -> str:
    return short_hash([data, collisions] if collisions else data)


def _sorted(data: Obj) -> Obj:
    """With keys in order: clients compare bytes to find the revision in use."""
    sorted_copy: Obj = orjson.loads(orjson.dumps(data, option=orjson.OPT_SORT_KEYS))
    return sorted_copy


def number(revision: Obj) -> int:
    return int(revision.get("revision") or 0)


def name(revision: Obj) -> str:
    return str(revision["metadata"]["name"])


def in_order(revisions: Collection[Obj]) -> list[Obj]:
    """Oldest first."""
    return sorted(revisions, key=lambda r: (number(r), r["metadata"].get("creationTimestamp") or "", name(r)))


def expendable(revisions: Sequence[Obj], live: Collection[str], limit: int) -> list[Obj]:
    """Return the oldest revisions that are not in use, as many as there are above the limit."""
    history = [revision for revision in in_order(revisions) if name(revision) not in live]
    return history[: max(0, len(history) - limit)]


class Revisions:
    def __init__(self, context: Context, pods: PodControl, labels: Labels) -> None:
        self._context = context
        self._client = context.client()
        self._control = pods
        self._labels = labels
        self._informer = context.informers.of(CONTROLLER_REVISIONS, indexes=CLAIM_INDEXES)

    async def of(self, workload: Obj, selector: LabelSelector) -> list[Obj]:
        """Return the workload's revisions, oldest first; matching ones without a controller become its own."""
        found = candidates(self._informer, workload)
        claimed = await self._control.claim(CONTROLLER_REVISIONS, workload, selector, found)
        await self._context.until_seen(self._informer, claimed)
        return in_order(claimed)

    async def latest(self, workload: Obj, revisions: Sequence[Obj], collisions: int) -> Latest:
        """Return the revision of the workload's template as it is now; made, or made the newest, if it is not yet."""
        data = patch_of(workload)
        equal = [revision for revision in revisions if revision.get("data") == data]
        following = number(revisions[-1]) + 1 if revisions else 1
        if not equal:
            made = await self._create(workload, data, following, collisions)
        elif equal[-1] is revisions[-1]:
            return Latest(equal[-1], collisions)
        else:
            made = Latest(await self._renumber(equal[-1], following), collisions)
        await self._context.until_seen(self._informer, [made.revision])
        return made

    async def _renumber(self, revision: Obj, following: int) -> Obj:
        metadata = revision["metadata"]
        patch = {"revision": following, "metadata": {"resourceVersion": metadata["resourceVersion"]}}
        return await self._client.patch(CONTROLLER_REVISIONS, metadata["name"], metadata["namespace"], patch)

    async def _create(self, workload: Obj, data: Obj, following: int, collisions: int) -> Latest:
        for _ in range(_TRIES):
            wanted = self._new(workload, data, following, collisions)
            try:
                return Latest(await self._client.create(CONTROLLER_REVISIONS, wanted), collisions)
            except AlreadyExists:
                metadata = wanted["metadata"]
                found = await self._client.get(CONTROLLER_REVISIONS, metadata["name"], metadata["namespace"])
            owner = controller_of(found)
            if found.get("data") == data and owner is not None and owner["uid"] == workload["metadata"]["uid"]:
                return Latest(found, collisions)
            collisions += 1
        raise AlreadyExists(f"no free name for a revision of {workload['kind']} {workload['metadata']['name']}")

    def _new(self, workload: Obj, data: Obj, following: int, collisions: int) -> Obj:
        hash_ = hash_of(data, collisions)
        of, labels = workload["metadata"], workload["spec"]["template"]["metadata"].get("labels") or {}
        called = f"{of['name']}-{hash_}"
        metadata: Obj = {"name": called, "namespace": of["namespace"], "ownerReferences": [make_owner(workload)]}
        metadata["labels"] = {**labels, **self._labels(called, hash_)}
        if of.get("annotations"):
            metadata["annotations"] = dict(of["annotations"])
        return {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": metadata,
            "data": _sorted(data),
            "revision": following,
        }

    async def trim(self, workload: Obj, revisions: Sequence[Obj], live: Collection[str]) -> None:
        """Delete revisions beyond revisionHistoryLimit; `live` are the names of those in use."""
        limit = workload["spec"].get("revisionHistoryLimit")
        surplus = expendable(revisions, live, 10 if limit is None else limit)
        for revision in surplus:
            metadata = revision["metadata"]
            await delete_if_exists(
                self._client, CONTROLLER_REVISIONS, metadata["name"], metadata["namespace"], uid=metadata["uid"]
            )
        await until_ending(self._context, self._informer, surplus)


def revision_of(pod: Obj) -> str:
    """Return the revision in an object's label: a hash, or the name of a revision."""
    return str((pod["metadata"].get("labels") or {}).get(REVISION_LABEL) or "")
