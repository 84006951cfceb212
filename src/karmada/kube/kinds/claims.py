"""The spec of a claim, wherever it stands: in a PersistentVolumeClaim, a StatefulSet's template or an ephemeral volume.

The holder decides when the rules apply: a StatefulSet's templates cannot change, so they are checked once.
"""

from __future__ import annotations

from karmada.kube.kinds import checks
from karmada.kube.kinds.filling import fill, fill_text
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, forbidden_field, invalid, not_supported, required
from karmada.kube.objects.types import Obj

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_CORE_SOURCE = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"


def default_claim_spec(spec: Obj) -> None:
    fill_text(spec, volumeMode="Filesystem")
    if spec.get("resources"):
        checks.canonical_quantities(spec["resources"], "limits", "requests")


def share_data_source(spec: Obj) -> None:
    """In place: what a claim is filled from stands in both fields, unless it is in another namespace."""
    source = spec.get("dataSource") or spec.get("dataSourceRef")
    if source and not source.get("namespace"):
        fill(spec, dataSource=dict(source), dataSourceRef=dict(source))


def claim_spec(errors: list[FieldError], path: str, spec: Obj) -> None:
    access_modes(errors, path, spec)
    checks.label_selector(errors, f"{path}.selector", spec.get("selector"))
    _size(errors, f"{path}.resources[storage]", ((spec.get("resources") or {}).get("requests") or {}).get("storage"))
    _class_name(errors, f"{path}.storageClassName", spec)
    if spec.get("volumeMode") is not None and spec["volumeMode"] not in VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", spec["volumeMode"], VOLUME_MODES))
    for key in ("dataSource", "dataSourceRef"):
        if spec.get(key) is not None:
            _data_source(errors, f"{path}.{key}", spec[key])
    _one_source(errors, path, spec)
    _class_name(errors, f"{path}.volumeAttributesClassName", spec)


def access_modes(
    errors: list[FieldError], path: str, spec: Obj, missing: str = "at least 1 access mode is required"
) -> None:
    modes = spec.get("accessModes") or []
    if not modes:
        errors.append(required(f"{path}.accessModes", missing))
    unknown = [mode for mode in modes if mode not in ACCESS_MODES]
    errors.extend(not_supported(f"{path}.accessModes", mode, ACCESS_MODES) for mode in unknown)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        errors.append(forbidden_field(f"{path}.accessModes", detail))


def _size(errors: list[FieldError], path: str, size: str | float | None) -> None:
    if size is None:
        errors.append(required(path))
        return
    parsed = checks.quantity(size)
    if parsed is None:
        errors.append(invalid(path, size, checks.BAD_QUANTITY))
    elif parsed.nano <= 0:
        errors.append(invalid(path, str(parsed), "must be greater than zero"))


def _class_name(errors: list[FieldError], path: str, spec: Obj) -> None:
    name = spec.get(path.rpartition(".")[2])
    if name:
        checks.add_invalid(errors, path, name, names.dns1123_subdomain(name))


def _data_source(errors: list[FieldError], path: str, source: Obj) -> None:
    group, kind = source.get("apiGroup"), source.get("kind")
    checks.needed(errors, f"{path}.name", source.get("name"))
    checks.needed(errors, f"{path}.kind", kind)
    if group:
        checks.add_invalid(errors, f"{path}.apiGroup", group, names.dns1123_subdomain(group))
    elif kind != "PersistentVolumeClaim":
        errors.append(invalid(path, kind or "", _CORE_SOURCE))


def _one_source(errors: list[FieldError], path: str, spec: Obj) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        detail = "may not be specified when dataSourceRef.namespace is specified"
        errors.append(invalid(path, f"{path}.dataSource", detail))
    elif any((source.get(key) or "") != (reference.get(key) or "") for key in ("apiGroup", "kind", "name")):
        errors.append(invalid(path, f"{path}.dataSource", "must match dataSourceRef"))
