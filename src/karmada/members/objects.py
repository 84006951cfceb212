"""Objects of one kind in one member cluster: read through an informer, created, updated and deleted.

Writes do not read first: an object that is not known to exist is created, and read only if it turns out to exist; a
known one is replaced on the version last seen. The version that an object had after the last write shows later whether
it was changed in the member. Versions mean nothing in another cluster: when the name may stand for another one, they
are forgotten.

The informer keeps only objects that are managed from here, without managedFields.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from functools import partial
from typing import Final, Literal, TypeAlias

from karmada.api import well_known
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import AlreadyExists, ApiError, Conflict, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.shapes import BARE_DOCS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.converge import converge
from karmada.kube.runtime.handled import Handled
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import Write
from karmada.members.members import Member
from karmada.members.retention import carries, in_place, is_managed, released, retained, version_of

MANAGED_ONLY: Final = f"{well_known.MANAGED}={well_known.TRUE}"

Changed: TypeAlias = Callable[[Obj, bool], None]
"""(object, listed): an object that is managed from here was changed or deleted, or found by the initial list."""
Retain: TypeAlias = Callable[[Obj, Obj], Awaitable[Obj]]
"""(desired, observed): what of the spec the member keeps."""


class _Unknown(Enum):
    UNKNOWN = 0


UNKNOWN: Final = _Unknown.UNKNOWN
"""Neither listed nor written yet."""
Observed: TypeAlias = Obj | Literal[_Unknown.UNKNOWN] | None


class NotOurs(ApiError):
    """An object that exists in the member, is not managed from here and must not be adopted."""

    code = 409

    @classmethod
    def of(cls, obj: Obj, cluster: str) -> NotOurs:
        return cls(
            f"resource(kind={obj['kind']}, {meta.namespace(obj)}/{meta.name(obj)}) already exists in the cluster "
            f"{cluster} and the {well_known.CONFLICT_RESOLUTION} strategy value is empty, "
            "Karmada will not manage this resource"
        )


class KindInMember:
    def __init__(self, member: Member, gvr: GVR, retain: Retain, changed: Changed, clock: Clock) -> None:
        """Make it; `changed` is called for what was not written here, from `watch` on."""
        self.gvr = gvr
        self.informer: Informer | None = None
        self.started_at = 0.0
        """When the informer was started, by the monotonic clock."""
        self.waiting: set[Key] = set()
        """Keys of the caller that wait for the informer to sync."""
        self._member = member
        self._client = member.client
        self._retain = retain
        self._clock = clock
        self._applied: Handled[Key, str] = Handled()
        self._changed = changed
        self._applying: set[Key] = set()
        """Objects that are being written: what comes of them meanwhile is looked at afterwards."""
        self._history = member.history

    # reading

    def watch(self) -> Informer:
        """Watch all managed objects of the kind, from the first call on."""
        if self.informer is None:
            self.started_at = self._clock.monotonic()
            self.informer = self._member.informers.of(self.gvr, label_selector=MANAGED_ONLY, shape=BARE_DOCS)
            self.informer.add_handler(self._handle)
        return self.informer

    def _handle(self, old: Obj | None, new: Obj | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        assert self.informer is not None
        if key_of(obj) not in self._applying:
            self._changed(obj, not self.informer.synced)

    def observe(self, key: Key) -> Observed:
        """Return the newest known state, without a request to the member."""
        self._check_history()
        if self.informer is None or (not self.informer.synced and key not in self._applied):
            return UNKNOWN
        return self._shown(key)

    def _shown(self, key: Key) -> Obj | None:
        return None if self.informer is None else self.informer.get(key)

    async def live(self, key: Key) -> Obj | None:
        try:
            return meta.without_managed_fields(await self._client.get(self.gvr, key.name, key.namespace))
        except NotFound:
            return None

    def settled(self, manifest: Obj, observed: Obj) -> bool:
        """Return whether the object has not changed since it was last found to be as it should."""
        self._check_history()
        return self._applied.is_done(key_of(observed), version_of(observed)) and carries(observed, manifest)

    def _check_history(self) -> None:
        if self._history != self._member.history:
            self._history = self._member.history
            self._applied.clear()

    # writing

    async def apply(self, manifest: Obj, observed: Observed) -> Write:
        """Have the object as the manifest says, from what was observed of it, and watch its kind from then on.

        NotOurs when it must not be adopted.
        """
        key = key_of(manifest)
        last = self._shown(key)
        self._applying.add(key)
        try:
            history = self._member.history
            write = await self._converge(manifest, observed)
            last = write.object
            informer = self.watch()
            if history == self._member.history:
                self._check_history()
                self._applied.done(key, version_of(last))
                informer.wrote(last)
            return write
        finally:
            self._applying.discard(key)
            self._report_since(last, self._shown(key))

    def _report_since(self, last: Obj | None, shown: Obj | None) -> None:
        """Report that an object was changed or deleted while it was being written: the write's own event is neither."""
        versions = {"" if state is None else meta.resource_version(state) for state in (last, shown)}
        obj = shown if shown is not None else last
        if obj is not None and len(versions) > 1:
            self._changed(obj, False)

    async def _converge(self, manifest: Obj, observed: Observed) -> Write:
        async def make(current: Obj | None) -> Obj:
            return manifest if current is None else await self._updated(manifest, current)

        known = None if observed is UNKNOWN else observed
        applied = await converge(make, known, self._put, partial(self.live, key_of(manifest)))
        assert applied is not None
        return Write(applied.outcome, meta.without_managed_fields(applied.object))

    async def _updated(self, manifest: Obj, observed: Obj) -> Obj:
        """Return the observed object as the manifest wants it: itself when it is so already."""
        overwrites = meta.annotations(manifest).get(well_known.CONFLICT_RESOLUTION) == well_known.CONFLICT_OVERWRITE
        if not is_managed(observed) and not overwrites:
            raise NotOurs.of(manifest, self._member.name)
        wanted = await self._retain(retained(manifest, observed), observed)
        return observed if in_place(wanted, observed) else wanted

    async def _put(self, current: Obj | None, wanted: Obj) -> Obj:
        """Update the object; create it when there is none, whatever the create is refused for.

        Its node port is allocated, a quota is full, a webhook denies creates: then the live object decides.
        """
        if current is not None:
            return await self._client.update(self.gvr, wanted)
        try:
            return await self._client.create(self.gvr, wanted)
        except (AlreadyExists, NotFound):
            raise
        except ApiError as error:
            if await self.live(key_of(wanted)) is None:
                raise
            raise AlreadyExists(error.message) from error

    # deleting

    async def delete(self, manifest: Obj) -> None:
        """Delete the object, if it is managed from here; does not wait until it is gone."""
        key = key_of(manifest)
        observed = self.observe(key)
        if not isinstance(observed, dict):
            observed = await self.live(key)
        if observed is not None and is_managed(observed):
            await self._delete(key, meta.uid(observed))
        self.forget(key)

    async def _delete(self, key: Key, uid: str) -> None:
        try:
            await self._client.delete(self.gvr, key.name, key.namespace, propagation="Background", uid=uid)
        except NotFound:
            return
        except Conflict:
            observed = await self.live(key)  # another object of the same name, by now
            if observed is not None and is_managed(observed):
                raise

    async def release(self, manifest: Obj) -> None:
        """Leave the object to the member: only the labels and annotations of this control plane are removed.

        One that somebody deletes meanwhile is not made again.
        """
        key = key_of(manifest)

        async def make(current: Obj | None) -> Obj | None:
            return (
                None if current is None or not is_managed(current) else await self._updated(released(manifest), current)
            )

        await converge(make, await self.live(key), self._put, partial(self.live, key))
        self.forget(key)

    def forget(self, key: Key) -> None:
        self._applied.forget(key)
