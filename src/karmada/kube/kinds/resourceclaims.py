"""ResourceClaims and their templates: the defaults of device requests."""

from __future__ import annotations

from karmada.kube.kinds.filling import fill_text, part
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects.errors import FieldError, invalid
from karmada.kube.objects.types import Obj


def default_claim(obj: Obj) -> None:
    _default_spec(part(obj, "spec"))


def default_claim_template(obj: Obj) -> None:
    _default_spec(part(part(obj, "spec"), "spec"))


def _default_spec(spec: Obj) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        if request.get("exactly") is not None:
            _default_request(request["exactly"])
        for alternative in request.get("firstAvailable") or ():
            _default_request(alternative)


def _default_request(request: Obj) -> None:
    fill_text(request, allocationMode="ExactCount")
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1
    for toleration in request.get("tolerations") or ():
        fill_text(toleration, operator="Equal")


def update_claim(obj: Obj, old: Obj) -> list[FieldError]:
    new, was = obj.get("spec"), old.get("spec")
    return [invalid("spec", new, "field is immutable")] if new != was else []


RESOURCE_CLAIM = Strategy(default=default_claim, validate_update=update_claim, returns_deleted=True)
RESOURCE_CLAIM_TEMPLATE = Strategy(default=default_claim_template, validate_update=update_claim, returns_deleted=True)
