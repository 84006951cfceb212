"""Watches every kind that can be propagated, as soon as the server serves it: none of the control plane's own.

Discovery is read at the start and whenever a CustomResourceDefinition or an APIService changes. It is polled only for
servers behind an APIService, which may change what they serve without an event, and, rarely, as a safety net. A real
API server lists a new CRD's kind a little after the CRD is established: until then discovery is read again with a
growing back-off. Of each kind only the preferred version is watched, by an informer that keeps light templates.

`find` reads from those informers; for kinds that are not watched, or not listed yet, from the server.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from karmada.api import well_known
from karmada.controllers.context import Context
from karmada.controllers.indexes import policy_ids
from karmada.controllers.templates import Ref, light_of
from karmada.kube.client.discovery import Catalog, Mapping, NoMatch
from karmada.kube.objects import meta
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVK, GVR, GroupResource, GroupVersion
from karmada.kube.objects.gvrs import APISERVICES, CRDS
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import ControllerOptions, Reconciler, Result, Retry, Watch, requeue
from karmada.kube.runtime.follow_ups import FollowUpWriter
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.sharing import everywhere
from karmada.kube.runtime.waiting import with_timeout

_OWN_GROUPS: Final = frozenset(
    f"{name}.karmada.io"
    for name in ("cluster", "policy", "work", "config", "networking", "autoscaling", "remedy", "apps")
) | {"events.k8s.io"}
_OWN_VERSIONS: Final = frozenset({GroupVersion("coordination.k8s.io", "v1")})
_OWN_KINDS: Final = frozenset({GVK("", "v1", "Event")})
_NEEDED_VERBS: Final = ("delete", "list", "watch")
_NEVER: Final = ("kube-system", "extension-apiserver-authentication")
"""A ConfigMap with keys of the API server itself."""


@dataclass(frozen=True, slots=True)
class SkippedApis:
    """Kinds that are never propagated, by whole groups, by versions of groups, and one by one."""

    groups: frozenset[str] = _OWN_GROUPS
    versions: frozenset[GroupVersion] = _OWN_VERSIONS
    kinds: frozenset[GVK] = _OWN_KINDS

    @classmethod
    def parse(cls, text: str) -> SkippedApis:
        """Besides our own, what `text` names: `group`, `group/version`, `group/version/Kind,Kind`, `v1/Kind,Kind`.

        Several are separated by semicolons. ValueError when one is none of these.
        """
        groups, versions, kinds = set(_OWN_GROUPS), set(_OWN_VERSIONS), set(_OWN_KINDS)
        for token in filter(None, text.split(";")):
            parts = token.split("/")
            if len(parts) == 1:
                groups.add(token)
            elif len(parts) == 2 and not token.startswith("v1"):
                versions.add(GroupVersion(*parts))
            elif len(parts) <= 3:
                group, version = parts[:-1] if len(parts) == 3 else ("", parts[0])
                kinds.update(GVK(group, version, kind) for kind in parts[-1].split(","))
            else:
                raise ValueError(f"parse --skipped-propagating-apis invalid parameter: {token}")
        return cls(frozenset(groups), frozenset(versions), frozenset(kinds))

    def propagates(self, mapping: Mapping) -> bool:
        """Return whether a served resource can be a template."""
        gvk = mapping.gvk
        if not mapping.allows(*_NEEDED_VERBS):
            return False
        return gvk.group not in self.groups and mapping.gvr.group_version not in self.versions and gvk not in self.kinds


class SkippedNamespaces:
    """The control plane's own, and those that a pattern names as a whole."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [re.compile(f"^{pattern}$") for pattern in patterns]
        self._known: dict[str, bool] = {"": False}

    def skips(self, gvk: GVK, namespace: str, name: str) -> bool:
        if (namespace, name) == _NEVER and gvk == ("", "v1", "ConfigMap"):
            return True
        skipped = self._known.get(namespace)
        if skipped is None:
            skipped = well_known.is_reserved_namespace(namespace) or any(p.search(namespace) for p in self._patterns)
            self._known[namespace] = skipped
        return skipped


BY_CLAIM: Final = "claimed-by-policy"
"""Templates by the ids of the policies that claim them."""
_OF_SERVER_ITSELF: Final = "kube-aggregator.kubernetes.io/automanaged"
_DISCOVERY: Final = Key("", "discovery")
_POLL: Final = 300.0
_POLL_OTHERS: Final = 30.0
"""While an aggregated server serves some of the kinds."""
_SYNC_TIMEOUT: Final = 10.0

log = get_logger("detector")


def _discovery_key(_obj: Obj) -> Iterable[Key]:
    return (_DISCOVERY,)


@dataclass(slots=True)
class Kind:
    gvk: GVK
    gvr: GVR
    informer: Informer
    slow: bool = False
    """Its initial list timed out and is no longer waited for."""


class Follower(Protocol):
    """Handles changes of templates."""

    def template_changed(self, kind: Kind, old: Obj | None, new: Obj | None, *, initially: bool) -> None:
        """With light templates. `initially`: the template existed before."""

    def kind_removed(self, kind: Kind) -> None:
        """Forget a kind that is not watched any longer."""


class Kinds(Reconciler):
    """A reconciler with one key: bring the informers in line with discovery."""

    name = "resource-discovery"
    options = ControllerOptions(shard_of=everywhere)
    watches = (
        Watch(CRDS, shape=METADATA, map_to=_discovery_key),
        Watch(APISERVICES, shape=METADATA, map_to=_discovery_key),
    )

    def __init__(self, context: Context, follower: Follower, claiming: FollowUpWriter) -> None:
        """`claiming` follows up on new templates of every kind that is watched and listed."""
        self._client = context.client
        self._follow_ups = context.follow_ups
        self._claiming = claiming
        self._informers = context.informers
        self._templates = context.templates
        self._clock = context.clock
        self._skipped = SkippedApis.parse(context.settings.skipped_propagating_apis)
        self._follower = follower
        self._crds = context.informers.of(CRDS, shape=METADATA)
        self._services = context.informers.of(APISERVICES, shape=METADATA)
        self._kinds: dict[GVK, Kind] = {}
        self._unsubscribe: dict[GVK, Callable[[], None]] = {}
        self._read_once = asyncio.Event()
        self._replaying = False

    def all(self) -> list[Kind]:
        """Return the kinds that are watched."""
        return list(self._kinds.values())

    # discovery

    def attach(self, add: Callable[[Key], None]) -> None:
        """Enqueue the one key, so that discovery is read at the start even without CRDs and APIServices."""
        add(_DISCOVERY)

    async def reconcile(self, _key: Key) -> Result:
        catalog = await self._client.mapper.refresh()
        wanted = {
            mapping.gvk: mapping for mapping in catalog.by_group_resource.values() if self._skipped.propagates(mapping)
        }
        for gvk in [gvk for gvk in self._kinds if gvk not in wanted]:
            await self._leave(gvk, catalog)
        for gvk, mapping in wanted.items():
            if gvk not in self._kinds:
                self._follow(mapping)
        self._read_once.set()
        if await self._expected() - catalog.by_group_resource.keys():
            return Retry
        return requeue(_POLL if self._served_here() else _POLL_OTHERS)

    async def _expected(self) -> set[GroupResource]:
        """Return the resources that the CRDs define."""
        resources = set()
        async for crd in self._crds.scan():
            if not meta.is_deleting(crd):
                plural, _, group = meta.name(crd).partition(".")
                resources.add(GroupResource(group, plural))
        return resources

    def _served_here(self) -> bool:
        return all(_OF_SERVER_ITSELF in meta.labels(service) for service in self._services.list())

    def _follow(self, mapping: Mapping) -> None:
        informer = self._informers.of(mapping.gvr, shape=light_of(mapping.gvk), indexes={BY_CLAIM: policy_ids})
        kind = self._kinds[mapping.gvk] = Kind(mapping.gvk, mapping.gvr, informer)
        self._replaying = True
        try:
            self._unsubscribe[mapping.gvk] = informer.add_handler(partial(self._changed, kind))
        finally:
            self._replaying = False
        informer.start()
        informer.when_synced(partial(self._claim_new, kind))
        log.v(1).info("Following a kind", kind=str(mapping.gvk))

    def _claim_new(self, kind: Kind) -> None:
        """Until its list is complete, a new template of the kind would be taken for one that existed before."""
        if self._kinds.get(kind.gvk) is kind:
            self._follow_ups.register(kind.gvk, self._claiming)

    async def stop(self) -> None:
        for gvk in self._kinds:
            self._follow_ups.unregister(gvk, self._claiming)

    async def _leave(self, gvk: GVK, catalog: Catalog) -> None:
        """Stop watching a kind that is gone, or is served in another version; one whose discovery failed stays."""
        kind = self._kinds[gvk]
        if kind.gvr.group_version in catalog.failed:
            return
        self._unsubscribe.pop(gvk)()
        del self._kinds[gvk]
        self._follow_ups.unregister(gvk, self._claiming)
        if kind.gvr not in catalog.by_gvr:
            await kind.informer.stop()
        self._follower.kind_removed(kind)
        log.v(1).info("Following a kind no longer", kind=str(gvk))

    def _changed(self, kind: Kind, old: Obj | None, new: Obj | None) -> None:
        self._follower.template_changed(kind, old, new, initially=self._replaying or not kind.informer.synced)

    # reads

    async def get(self, gvk: GVK) -> Kind | None:
        """Return a kind that is watched."""
        if not self._read_once.is_set():
            await self._read_once.wait()
        return self._kinds.get(gvk)

    def known(self, ref: Ref) -> Obj | None:
        """Return a template of a watched kind, if the informer has it."""
        kind = self._kinds.get(ref.gvk)
        return None if kind is None else kind.informer.get(ref.key)

    @property
    def followed(self) -> list[GVK]:
        return list(self._kinds)

    async def scan(self, gvk: GVK, namespace: str) -> AsyncIterator[Obj]:
        """Yield the templates of a kind in a namespace ("" for all), as far as the informer has them."""
        kind = self._kinds.get(gvk)
        if kind is not None:
            async for template in kind.informer.scan(namespace):
                yield template

    def known_of(self, gvk: GVK, policy_id: str) -> list[Obj]:
        """Templates of a kind that carry a policy's id, as far as the informer has them."""
        kind = self._kinds.get(gvk)
        return [] if kind is None else kind.informer.by_index(BY_CLAIM, policy_id)

    async def find(self, ref: Ref) -> Obj | None:
        """Return a template, light; None when there is none."""
        kind = await self.get(ref.gvk)
        if kind is None:
            return await self._live(ref)
        found = kind.informer.get(ref.key)
        if found is None and not await self._synced(kind):
            return await self._live(ref)
        return found or kind.informer.get(ref.key)

    async def wrote(self, ref: Ref, template: Obj) -> None:
        """Record what the server returned for a write of a template."""
        kind = await self.get(ref.gvk)
        if kind is not None:
            kind.informer.wrote(template)

    async def whole(self, ref: Ref) -> Obj | None:
        """Return the whole template; None when there is none."""
        try:
            return await self._templates.whole(ref)
        except NoMatch:
            return None

    async def claimed(self, gvk: GVK, namespace: str, name: str, id_label: str, policy_id: str) -> list[Obj]:
        """Templates of a kind, in a namespace ("" for all), that carry a policy's id; light.

        Where none is known, from the server: by name when one is given, else all with the label.
        """
        kind = await self.get(gvk)
        if kind is not None and await self._synced(kind):
            known = self.known_of(gvk, policy_id)
            known = [obj for obj in known if not namespace or meta.namespace(obj) == namespace]
            if known:
                return known
        try:
            mapping = await self._client.mapper.mapping(gvk)
            if name and (namespace or not mapping.namespaced):
                found = [await self._client.get(mapping.gvr, name, namespace)]
            else:
                selector = f"{id_label}={policy_id}"
                found = (await self._client.list_all(mapping.gvr, namespace, label_selector=selector)).items
        except (NotFound, NoMatch):
            return []
        return [light_of(gvk).of(obj) for obj in found]

    async def resource(self, ref: Ref) -> GVR | GVK:
        """Return the resource to write a template to; its kind if it is not watched."""
        kind = await self.get(ref.gvk)
        return ref.gvk if kind is None else kind.gvr

    async def _live(self, ref: Ref) -> Obj | None:
        found = await self.whole(ref)
        return None if found is None else light_of(ref.gvk).of(found)

    async def _synced(self, kind: Kind) -> bool:
        if not kind.informer.synced and not kind.slow:
            try:
                await with_timeout(self._clock, kind.informer.wait_synced(), _SYNC_TIMEOUT)
            except TimeoutError:
                kind.slow = True
        return kind.informer.synced
