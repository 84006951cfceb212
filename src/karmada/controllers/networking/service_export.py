"""ServiceExports: the EndpointSlices of a Service that a member exports are collected.

A ServiceExport counts where it is, in the member: usually it was propagated there. EndpointSlices of a member are
watched from the first ServiceExport on that was applied there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from karmada.api.multicluster import ServiceExport
from karmada.controllers.networking.carriers import EXPORTS
from karmada.controllers.networking.collector import Collector
from karmada.controllers.networking.index import EXPORT_KIND, applied_exports
from karmada.kube.objects import meta
from karmada.kube.objects.shapes import METADATA
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.members.members import Member

SERVICE_EXPORT: Final = "service-export-controller"


class ServiceExports(Collector):
    name = SERVICE_EXPORT
    options = replace(Collector.options, queue_name="service-export")
    flow = EXPORTS
    kind = EXPORT_KIND
    begins = staticmethod(applied_exports)

    def more_informers(self, member: Member) -> list[Informer]:
        return [member.informers.of(ServiceExport.gvr, shape=METADATA)]

    def is_wanted(self, cluster: str, service: Key) -> bool:
        _, exports = self.watched[cluster].all
        export = exports.get(service)
        return export is not None and not meta.is_deleting(export)
