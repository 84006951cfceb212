"""MultiClusterService."""

from __future__ import annotations

from karmada.admission.bindings import give_id
from karmada.admission.context import Context
from karmada.api.names import cluster_name_errors
from karmada.api.well_known import MULTICLUSTER_SERVICE_ID
from karmada.kube.kinds import checks
from karmada.kube.kinds.metadata import metadata_errors, metadata_update_errors
from karmada.kube.kinds.services import load_balancer_ingress
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, duplicate, invalid
from karmada.kube.objects.types import Obj

TYPES = ("CrossCluster", "LoadBalancer")


def mutate(service: Obj, _old: Obj | None, context: Context) -> None:
    give_id(service, MULTICLUSTER_SERVICE_ID, context)
    spec = service.get("spec")
    if spec is not None and spec.get("range") is None:
        spec["range"] = {}


def validate(service: Obj, old: Obj | None, _context: Context) -> list[FieldError]:
    spec = service["spec"]
    errors = FieldErrors()
    if old is not None:
        errors += metadata_update_errors(service, old)
        before = (old.get("spec") or {}).get("types") or []
        if (spec.get("types") or []) != before:
            errors.append(invalid("spec.types", before, "MultiClusterService types are immutable"))
    errors += metadata_errors(service, namespaced=True, name_errors=names.dns1035_label, old=old)
    _ports(errors, spec.get("ports") or [])
    _types(errors, spec.get("types") or [])
    for side in ("providerClusters", "consumerClusters"):
        for index, cluster in enumerate(spec.get(side) or ()):
            name = cluster.get("name") or ""
            wrong = cluster_name_errors(name)
            if wrong:
                errors.append(invalid(f"spec.range.{side}[{index}]", name, ",".join(wrong)))
    if old is not None:
        load_balancer_ingress(errors, ingress_of(service))
    return errors


def ingress_of(obj: Obj) -> list[Obj]:
    """Return the addresses of a load balancer, from the status."""
    return ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []


def _ports(errors: list[FieldError], ports: list[Obj]) -> None:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"spec.ports[{index}]", port.get("name") or ""
        if name:
            checks.add_invalid(errors, f"{path}.name", name, names.dns1123_label(name))
            if name in seen:
                errors.append(duplicate(f"{path}.name", name))
            seen.add(name)
        checks.port_number(errors, f"{path}.port", port.get("port") or 0)
        if port.get("targetPort") is not None:
            checks.port_or_name(errors, f"{path}.targetPort", port["targetPort"])


def _types(errors: list[FieldError], types: list[str]) -> None:
    for index, found in enumerate(types):
        if found not in TYPES:
            errors.append(invalid(f"spec.types[{index}]", found, "ExposureType Error"))
    if len(set(types)) > 1:
        detail = "MultiClusterService types should not contain more than one type"
        errors.append(invalid("spec.types", types, detail))
