"""The scale of a target in each of its clusters, and the pods that belong to it there.

All clusters are read at the same time, with few requests to each: every further one would need, and keep, a
connection. One that does not answer in time is left out, and for a while not requested again. Pods come from an
informer for each cluster, which exists while some FederatedHPA uses it. A cluster of which something cannot be read is
left out as a whole: its replicas without its pods would be misleading.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from karmada.controllers.context import Context
from karmada.controllers.federated_hpa.pods import PodKey, slim_pod
from karmada.controllers.federated_hpa.target import Target
from karmada.kube.autoscaling.round import NO_SELECTOR, SELECTOR_REQUIRED, unparsable
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.selectors import parse_labels
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.label_index import BY_LABEL, index_by_label, select
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import with_timeout
from karmada.members.access import NoAccess
from karmada.members.members import Member

_ANSWER_SECONDS: Final = 5.0
_SILENT_SECONDS: Final = 15.0
"""For how long a member that did not answer is not requested again."""
_REQUESTS: Final = 8
"""To one member at a time."""
_INVALID: Final = "InvalidSelector"
NOT_READY, NOT_REACHABLE, NOT_THERE, NO_PODS = "not ready", "not reachable", "not there", "its pods are not listed yet"
log = get_logger("federated-hpa")


class BadSelector(NamedTuple):
    """The scale has no usable selector: an event, and the message of a condition."""

    event: str
    text: str
    message: str


@dataclass(slots=True)
class Scales:
    """All clusters together."""

    wanted: int = 0
    existing: int = 0
    selector: str = ""
    """That of the first cluster that has one."""
    pods: dict[PodKey, Obj] = field(default_factory=dict)
    bad_selectors: list[BadSelector] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Clusters that do not count, and why."""


class MemberScales:
    def __init__(self, context: Context) -> None:
        self._members = context.members
        self._clock = context.clock
        self._sync_timeout = context.settings.cluster_cache_sync_timeout
        self._used: dict[str, dict[Key, None]] = {}
        """The FederatedHPAs that use the pods of a cluster."""
        self._uses: dict[Key, frozenset[str]] = {}
        self._since: dict[str, float] = {}
        """When the pods of a cluster were first requested."""
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._silent: dict[str, float] = {}
        """Members that did not answer, and until when they are left alone."""

    # pods

    @property
    def followed(self) -> list[str]:
        """Return the clusters whose pods are kept."""
        return list(self._used)

    async def use(self, key: Key, clusters: Iterable[str]) -> None:
        """Note which clusters a FederatedHPA needs; informers that nobody needs any more end."""
        wanted, before = frozenset(clusters), self._uses.pop(key, frozenset())
        if wanted:
            self._uses[key] = wanted
        for name in wanted - before:
            self._used.setdefault(name, {})[key] = None
        unused = []
        for name in before - wanted:
            del self._used[name][key]
            if not self._used[name]:
                del self._used[name]
                unused.append(name)
        for name in unused:
            if name not in self._used:  # another may have begun to use it meanwhile
                await self._drop(name)

    async def stop(self) -> None:
        names = list(self._used)
        self._uses.clear()
        self._used.clear()
        for name in names:
            await self._drop(name)

    async def _drop(self, name: str) -> None:
        listed = name in self._since
        for known in (self._since, self._slots, self._silent):
            known.pop(name, None)
        member = self._members.known(name)
        if listed and member is not None:
            await member.informers.discard(self._pods_of(member))

    def _pods_of(self, member: Member) -> Informer:
        return member.informers.of(PODS, shape=Shape.summary(slim_pod), indexes={BY_LABEL: index_by_label})

    async def _synced(self, name: str, member: Member) -> Informer | None:
        """Return the pods of a cluster; None when they could not be listed in time, counted from the first request."""
        pods = self._pods_of(member)
        since = self._since.setdefault(name, self._clock.monotonic())
        if not pods.synced:
            left = since + self._sync_timeout - self._clock.monotonic()
            if left <= 0:
                return None
            try:
                await with_timeout(self._clock, pods.wait_synced(), left)
            except TimeoutError:
                return None
        return pods

    # scales

    async def of(self, target: Target) -> Scales:
        found = Scales(left_out=dict.fromkeys(target.unready, NOT_READY))
        answers = await asyncio.gather(*(self._one(name, target) for name in target.ready))
        for name, answer in zip(target.ready, answers, strict=True):
            if isinstance(answer, str):
                found.left_out[name] = answer
            else:
                _add(found, name, *answer, target.namespace)
        return found

    async def _one(self, name: str, target: Target) -> tuple[Obj, Informer] | str:
        """Return the scale in one cluster, and the pods there; why, where one of them cannot be read."""
        scale = await self._read(name, target)
        member = self._members.known(name)
        if isinstance(scale, str) or member is None:
            return scale if isinstance(scale, str) else NOT_REACHABLE
        pods = await self._synced(name, member)
        return NO_PODS if pods is None else (scale, pods)

    async def _read(self, name: str, target: Target) -> Obj | str:
        """Return the scale; where it cannot be read, why."""
        async with self._slots.setdefault(name, asyncio.Semaphore(_REQUESTS)):
            now = self._clock.monotonic()
            if self._silent.get(name, now) > now:
                return NOT_REACHABLE
            try:
                client = self._members.get(name).client
                reading = client.get(target.gvr, target.name, target.namespace, subresource="scale")
                return await with_timeout(self._clock, reading, _ANSWER_SECONDS)
            except NotFound:
                return NOT_THERE
            except TimeoutError:
                self._silent[name] = self._clock.monotonic() + _SILENT_SECONDS
                return NOT_REACHABLE
            except (ApiError, ConnectionFailed, NoAccess) as error:
                where = f"{target.gvr}/{target.name}"
                log.v(1).info("A scale cannot be read", cluster=name, target=where, err=str(error))
                return NOT_REACHABLE


def _add(found: Scales, name: str, scale: Obj, pods: Informer, namespace: str) -> None:
    status = scale.get("status") or {}
    found.wanted += (scale.get("spec") or {}).get("replicas") or 0
    found.existing += status.get("replicas") or 0
    text = status.get("selector") or ""
    found.selector = found.selector or text
    if not text:
        found.bad_selectors.append(BadSelector(*SELECTOR_REQUIRED, NO_SELECTOR))
        return
    try:
        selector = parse_labels(text)
    except ValueError as error:
        found.bad_selectors.append(BadSelector(_INVALID, unparsable(error), unparsable(error)))
        return
    found.pods.update({PodKey(name, pod["metadata"]["name"]): pod for pod in select(pods, namespace, selector)})


def remark(left_out: dict[str, str]) -> str:
    """Return the clusters that do not count, for the message of a condition; empty if all do."""
    if not left_out:
        return ""
    return "; not counted: " + ", ".join(f"{name} ({why})" for name, why in sorted(left_out.items()))
