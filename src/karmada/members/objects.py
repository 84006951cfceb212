"""Objects of one kind in one member cluster: seen through an informer, made, changed and taken away.

Writes go without a look where that can be: what is not known to be there is created, and only when it turns out to
exist is it read; what is known is replaced on the version last seen. What was written is remembered until the informer
has heard of it, and the version it had then tells later whether somebody changed it over there. Versions mean nothing
in another cluster: when there may be another one behind the name, all of that is forgotten.

The informer keeps only objects that are managed from here, without the notes on who wrote what.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final, Literal, NamedTuple, TypeAlias

from karmada.api import well_known
from karmada.kube.objects import meta
from karmada.kube.objects.errors import AlreadyExists, ApiError, Conflict, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Handler, Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.members.members import Member
from karmada.members.retention import carries, in_place, is_managed, released, retained, version_of

MANAGED_ONLY: Final = f"{well_known.MANAGED}={well_known.TRUE}"
_TRIES = 5

Retain: TypeAlias = Callable[[Obj, Obj], Awaitable[Obj]]
"""(desired, observed): what of the spec the member keeps."""


class _Unknown(Enum):
    UNKNOWN = 0


UNKNOWN: Final = _Unknown.UNKNOWN
"""Nobody has looked yet."""
Observed: TypeAlias = Obj | Literal[_Unknown.UNKNOWN] | None


class NotOurs(ApiError):
    """An object that was there before, and that nobody said may be taken over."""

    code = 409

    @classmethod
    def of(cls, obj: Obj, cluster: str) -> NotOurs:
        return cls(
            f"resource(kind={obj['kind']}, {meta.namespace(obj)}/{meta.name(obj)}) already exists in the cluster "
            f"{cluster} and the {well_known.CONFLICT_RESOLUTION} strategy value is empty, "
            "Karmada will not manage this resource"
        )


class Applied(NamedTuple):
    """What was done, and the object as the member has it now."""

    outcome: Literal["created", "updated", "none"]
    object: Obj


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


class KindInMember:
    def __init__(self, member: Member, gvr: GVR, retain: Retain) -> None:
        self.gvr = gvr
        self.informer: Informer | None = None
        self.asked_at = 0.0
        """When the informer was started, by the monotonic clock."""
        self.waiting: set[Key] = set()
        """Whoever wants to be told when the informer has synced, by keys of the caller's."""
        self._member = member
        self._client = member.client
        self._retain = retain
        self._versions: dict[Key, str] = {}
        self._ahead: dict[Key, Obj] = {}
        self._history = member.history

    # looking

    def watch(self, now: float, changed: Handler) -> Informer:
        """Follow all managed objects of the kind, once; `changed` does not hear of what was written here."""
        if self.informer is None:
            self.asked_at = now
            self.informer = self._member.informers.of(
                self.gvr, label_selector=MANAGED_ONLY, transform=meta.without_managed_fields, on_demand=True
            )

            def hear(old: Obj | None, new: Obj | None) -> None:
                if not self._is_echo(old, new):
                    changed(old, new)

            self.informer.add_handler(hear)
        return self.informer

    def observe(self, key: Key) -> Observed:
        """The newest that is known, without asking the member."""
        self._keep_up()
        ahead = self._ahead.get(key)
        informer = self.informer
        if informer is None or not informer.synced:
            return UNKNOWN if ahead is None else ahead
        if ahead is not None:
            if _version(ahead) > _number(informer.resource_version):
                return ahead
            del self._ahead[key]
        return informer.get(key)

    async def live(self, key: Key) -> Obj | None:
        try:
            return await self._client.get(self.gvr, key.name, key.namespace)
        except NotFound:
            return None

    def settled(self, manifest: Obj, observed: Obj) -> bool:
        """Whether nothing has happened to the object since it was last found to be as it should."""
        self._keep_up()
        return self._versions.get(key_of(observed)) == version_of(observed) and carries(observed, manifest)

    def _is_echo(self, old: Obj | None, new: Obj | None) -> bool:
        """Whether this is the news of what was written here; the informer has caught up with that then."""
        self._keep_up()
        obj = new if new is not None else old
        assert obj is not None
        ahead = self._ahead.get(key_of(obj))
        if ahead is None or _version(obj) < _version(ahead):
            return False
        del self._ahead[key_of(obj)]
        return new is not None and _version(new) == _version(ahead)

    def _keep_up(self) -> None:
        if self._history != self._member.history:
            self._history = self._member.history
            self._versions.clear()
            self._ahead.clear()

    # changing

    async def apply(self, manifest: Obj, observed: Observed) -> Applied:
        """Have the object as the manifest says; NotOurs when it is somebody else's.

        A create may be refused for another reason although the object exists (its node port is allocated, a quota is
        full, a webhook denies creates), so after any refusal the live object decides.
        """
        for attempt in range(_TRIES):
            creating = not isinstance(observed, dict)
            try:
                if isinstance(observed, dict):
                    return await self._update(manifest, observed)
                return await self._create(manifest)
            except NotOurs:
                raise
            except ApiError as error:
                if attempt == _TRIES - 1 or not _worth_a_look(error, creating):
                    raise
                observed = await self.live(key_of(manifest))
                if creating and observed is None and not isinstance(error, AlreadyExists):
                    raise
        raise AssertionError("unreachable")

    async def _create(self, manifest: Obj) -> Applied:
        history = self._member.history
        made = await self._client.create(self.gvr, manifest)
        return Applied("created", self._note(made, history))

    async def _update(self, manifest: Obj, observed: Obj) -> Applied:
        overwrites = meta.annotations(manifest).get(well_known.CONFLICT_RESOLUTION) == well_known.CONFLICT_OVERWRITE
        if not is_managed(observed) and not overwrites:
            raise NotOurs.of(manifest, self._member.name)
        history = self._member.history
        wanted = await self._retain(retained(manifest, observed), observed)
        if in_place(wanted, observed):
            if history == self._member.history:
                self._keep_up()
                self._versions[key_of(observed)] = version_of(observed)
            return Applied("none", observed)
        written = await self._client.update(self.gvr, wanted)
        same = written["metadata"].get("resourceVersion") == observed["metadata"].get("resourceVersion")
        return Applied("none" if same else "updated", self._note(written, history))

    def _note(self, written: Obj, history: int) -> Obj:
        """The answer to a write that began in this history; the informer has it only later."""
        written = meta.without_managed_fields(written)
        if history != self._member.history:
            return written
        self._keep_up()
        key = key_of(written)
        self._versions[key] = version_of(written)
        if self.informer is None or _version(written) > _number(self.informer.resource_version):
            self._ahead[key] = written
        return written

    # taking away

    async def delete(self, manifest: Obj) -> None:
        """Take the object away, if it is managed from here; does not wait until it is gone."""
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
        """Leave the object to the member: only the marks of this control plane go."""
        key = key_of(manifest)
        observed = await self.live(key)
        if observed is not None and is_managed(observed):
            await self.apply(released(manifest), observed)
        self.forget(key)

    def forget(self, key: Key) -> None:
        self._versions.pop(key, None)
        self._ahead.pop(key, None)


def _worth_a_look(error: ApiError, creating: bool) -> bool:
    """Whether the live object may say how a failed write goes on; a create finds no kind or no namespace with a 404."""
    if creating:
        return not isinstance(error, NotFound)
    return isinstance(error, Conflict | NotFound)


def _version(obj: Obj) -> int:
    return _number(obj["metadata"].get("resourceVersion", ""))
