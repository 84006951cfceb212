"""ServiceExports: the EndpointSlices of a Service that a member exports are collected.

A ServiceExport counts where it is, in the member: usually it was propagated there. EndpointSlices of a member are
watched from the first ServiceExport on that was applied there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from karmada.api.multicluster import ServiceExport
from karmada.controllers.networking.carriers import EXPORTS, has_manifest
from karmada.controllers.networking.collector import Collector
from karmada.kube.objects import meta
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.members.members import Member

SERVICE_EXPORT: Final = "service-export-controller"
_KIND: Final = ServiceExport.gvk.kind


class ServiceExports(Collector):
    name = SERVICE_EXPORT
    options = replace(Collector.options, queue_name="service-export")
    flow = EXPORTS

    def requires_slices(self, work: Obj) -> bool:
        return self.may_require_slices(work) and meta.has_condition(
            (work.get("status") or {}).get("conditions"), "Applied"
        )

    def may_require_slices(self, work: Obj) -> bool:
        """Also while it is suspended, or cannot be applied: the member still has the export."""
        return has_manifest(work, _KIND) and not meta.is_deleting(work)

    def more_informers(self, member: Member) -> list[Informer]:
        return [member.informers.of(ServiceExport.gvr, shape=METADATA)]

    def is_wanted(self, cluster: str, service: Key) -> bool:
        _, exports = self.watched[cluster].all
        export = exports.get(service)
        return export is not None and not meta.is_deleting(export)
