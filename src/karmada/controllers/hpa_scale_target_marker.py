"""Labels the scale targets of propagated HorizontalPodAutoscalers, so that members retain the replicas set there.

The keys are the targets, not the autoscalers: a target is labelled while a propagated autoscaler names it, and
unlabelled when none does any longer. Autoscalers that are not propagated are ignored, so that a label that a user has
set beside one of those stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada.api import well_known
from karmada.controllers.context import Context
from karmada.kube.client.discovery import NoMatch
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.gvrs import AUTOSCALERS
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.keys import Key

MARKER: Final = "hpa-scale-target-marker"
_BY_TARGET: Final = "scale-target"


def is_propagated(autoscaler: Obj) -> bool:
    labels = meta.labels(autoscaler)
    return well_known.POLICY_ID in labels or well_known.CLUSTER_POLICY_ID in labels


def target_of(autoscaler: Obj) -> Iterable[Key]:
    """Return what it scales, as a key: its namespace, and the kind and name in one text."""
    ref = (autoscaler.get("spec") or {}).get("scaleTargetRef") or {}
    if not ref.get("kind") or not ref.get("name"):
        return ()
    return (Key(meta.namespace(autoscaler), f"{ref.get('apiVersion') or 'v1'}/{ref['kind']}/{ref['name']}"),)


def _target_index(autoscaler: Obj) -> Iterable[str]:
    return [str(key) for key in target_of(autoscaler)]


def _concerns(old: Obj | None, new: Obj | None) -> bool:
    if new is None:
        return True
    return is_propagated(new) or (old is not None and target_of(old) != target_of(new))


class HpaScaleTargetMarker(Reconciler):
    name = MARKER
    watches = (Watch(AUTOSCALERS, when=_concerns, map_to=target_of),)

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._autoscalers = context.informers.of(AUTOSCALERS, indexes={_BY_TARGET: _target_index})

    async def reconcile(self, key: Key) -> Result:
        scaling = self._autoscalers.by_index(_BY_TARGET, str(key))
        if any(is_propagated(autoscaler) for autoscaler in scaling):
            await self._mark(key, well_known.TRUE)
        elif not scaling:
            await self._mark(key, None)
        return Done

    async def _mark(self, key: Key, value: str | None) -> None:
        api_version, kind, name = key.name.rsplit("/", 2)
        try:
            gvr = await self._client.resource(GVK.parse(api_version, kind))
        except NoMatch as error:
            raise ApiError(f"unable to recognize scale ref resource, {key}, err: {error}") from error
        try:
            target = await self._client.get(gvr, name, key.namespace, shape=METADATA)
            if meta.labels(target).get(well_known.RETAIN_REPLICAS) != value:
                patch = {"metadata": {"labels": {well_known.RETAIN_REPLICAS: value}}}
                await self._client.patch(gvr, name, key.namespace, patch)
        except NotFound:
            return
