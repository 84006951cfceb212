"""The kinds that are watched in each member: those of which the cluster has Works.

A space is one member with the kinds in use there. A kind is watched from the first object of it that was applied (then
the member serves it) until the last Work with it is gone; the counts come from the Works' informer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, TypeAlias

from karmada.api import well_known
from karmada.controllers.works import manifests_of
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.operations import RETAIN
from karmada.kube.client.client import Client
from karmada.kube.client.discovery import NoMatch
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.gvk import GVK, GVR, gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.members.members import Member, Members
from karmada.members.objects import KindInMember, Retain

Changed: TypeAlias = Callable[[str, Obj, bool], None]
"""(cluster, object, listed): an object that a Work manages was changed or deleted, or found by the initial list."""
log = get_logger("work-status")


def kinds_of(work: Obj) -> set[GVK]:
    return {gvk_of(manifest) for manifest in manifests_of(work) if isinstance(manifest, dict)}


class Space:
    """One member, and the kinds in use there."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.kinds: dict[GVK, KindInMember] = {}


class Spaces:
    def __init__(
        self, members: Members, client: Client, interpreter: Interpreter, clock: Clock, changed: Changed
    ) -> None:
        """Make it; `changed` is called for objects of the kinds that are watched."""
        self._members = members
        self._client = client
        self._interpreter = interpreter
        self._clock = clock
        self._changed = changed
        self._spaces: dict[str, Space] = {}
        self._uses: dict[str, Counter[GVK]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def get(self, cluster: str) -> Space:
        """NoAccess when the cluster's settings give no access."""
        member = self._members.get(cluster)
        space = self._spaces.get(cluster)
        if space is None or space.member is not member:
            space = self._spaces[cluster] = Space(member)
        return space

    async def kind(self, space: Space, manifest: Obj) -> KindInMember:
        """Return the kind of a manifest; NoMatch when neither control plane nor member can have such an object."""
        if not meta.name(manifest):
            raise NoMatch("resource name may not be empty")
        gvk = gvk_of(manifest)
        kind = space.kinds.get(gvk)
        if kind is None:
            gvr = await self._resource(space, gvk)
            changed = partial(self._changed, space.member.name)
            kind = space.kinds.setdefault(
                gvk, KindInMember(space.member, gvr, self._retainer(gvk), changed, self._clock)
            )
        return kind

    async def _resource(self, space: Space, gvk: GVK) -> GVR:
        """Return the resource of a kind, from the control plane's discovery, else from the member's."""
        try:
            return (await self._client.mapper.mapping(gvk)).gvr
        except NoMatch:
            return (await space.member.client.mapper.mapping(gvk)).gvr

    def _retainer(self, gvk: GVK) -> Retain:
        interpreter = self._interpreter

        async def retain(desired: Obj, observed: Obj) -> Obj:
            return await interpreter.retain(desired, observed) if interpreter.enabled(gvk, RETAIN) else desired

        return retain

    def revive(self, cluster: str) -> None:
        """End the back-off of the informers of a member that is back."""
        space = self._spaces.get(cluster)
        if space is None:
            return
        for kind in space.kinds.values():
            if kind.informer is not None and kind.informer.last_error is not None:
                self._later(_restart(space.member.informers, kind.informer))

    def drop(self, cluster: str) -> None:
        """Drop a cluster that is gone, and its informers with it."""
        self._spaces.pop(cluster, None)

    # counting

    def count(self, old: Obj | None, new: Obj | None) -> None:
        """Count the kinds in use after a change of a Work; a handler of the Works' informer."""
        if old is not None and new is not None and old.get("spec") is new.get("spec"):
            return
        before = kinds_of(old) if old is not None else set()
        after = kinds_of(new) if new is not None else set()
        if before == after:
            return
        work = new if new is not None else old
        assert work is not None
        cluster = well_known.cluster_of_namespace(work["metadata"].get("namespace", ""))
        if cluster is None:
            return
        uses = self._uses.get(cluster)
        if uses is None:
            uses = self._uses[cluster] = Counter()
        for gvk in after - before:
            uses[gvk] += 1
        gone = before - after
        for gvk in gone:
            uses[gvk] -= 1
        if gone:
            self._leave(cluster, [gvk for gvk in gone if uses[gvk] <= 0])

    def _leave(self, cluster: str, unused: Iterable[GVK]) -> None:
        uses, space = self._uses[cluster], self._spaces.get(cluster)
        for gvk in unused:
            del uses[gvk]
            kind = space.kinds.pop(gvk, None) if space is not None else None
            if kind is not None and kind.informer is not None and space is not None:
                self._later(space.member.informers.discard(kind.informer))
        if not uses:
            del self._uses[cluster]

    # tasks

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="work-status informers")
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("An informer could not be stopped or started", task.exception())

    async def stop(self) -> None:
        await cancel_and_wait(*self._tasks)


async def _restart(informers: Informers, informer: Informer) -> None:
    await informer.stop()
    if informer in informers.all():
        informer.start()
