"""MultiClusterIngress: the rules of an Ingress."""

from __future__ import annotations

from karmada.admission.context import Context
from karmada.admission.services import ingress_of
from karmada.api.older_forms import ingress_warnings, present_ingress
from karmada.kube.kinds.metadata import metadata_errors, metadata_update_errors
from karmada.kube.kinds.networking import validate_ingress
from karmada.kube.kinds.services import load_balancer_ingress
from karmada.kube.objects.errors import FieldError, FieldErrors
from karmada.kube.objects.types import Obj


def mutate(ingress: Obj, _old: Obj | None, context: Context) -> None:
    spec = ingress.get("spec")
    if spec is not None:
        for warning in ingress_warnings(spec):
            context.warn(warning)


def validate(ingress: Obj, old: Obj | None, _context: Context) -> list[FieldError]:
    errors = FieldErrors()
    if old is not None:
        errors += metadata_update_errors(ingress, old)
    errors += metadata_errors(ingress, namespaced=True, old=old)
    errors += validate_ingress({**ingress, "spec": present_ingress(ingress.get("spec") or {})})
    if old is not None:
        load_balancer_ingress(errors, ingress_of(ingress))
    return errors
