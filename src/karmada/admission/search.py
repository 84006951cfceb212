"""ResourceRegistry. It is served without a webhook, by an API server that calls this; nothing is filled in."""

from __future__ import annotations

from urllib.parse import urlsplit

from karmada.admission.affinity import check_affinity
from karmada.kube.kinds import checks
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, invalid
from karmada.kube.objects.types import Obj

_NO_URL = "must be a valid http or https URL with non-empty scheme and host"


def validate(registry: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = registry.get("spec") or {}
    check_affinity(errors, "spec.targetCluster", spec.get("targetCluster"))
    for index, selector in enumerate(spec.get("resourceSelectors") or ()):
        path = f"spec.resourceSelectors[{index}]"
        version, namespace = selector.get("apiVersion") or "", selector.get("namespace") or ""
        if version.count("/") > 1:
            errors.append(invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
        if namespace:
            checks.add_invalid(errors, f"{path}.namespace", namespace, names.dns1123_label(namespace))
    store = (spec.get("backendStore") or {}).get("openSearch") or {}
    for index, address in enumerate(store.get("addresses") or ()):
        if not _is_url(address):
            errors.append(invalid(f"spec.backendStore.openSearch.addresses[{index}]", address, _NO_URL))
    return errors


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)
