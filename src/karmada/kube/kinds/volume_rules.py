"""Validation of a pod's volumes: exactly one source each, and what that source needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from karmada.kube.kinds import checks
from karmada.kube.kinds.claims import claim_spec
from karmada.kube.kinds.container_rules import field_reference, resource_reference
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, duplicate, forbidden_field, invalid, not_supported, required
from karmada.kube.objects.types import Obj

_ONE_SOURCE = "may not specify more than 1 volume type"
_BAD_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_CLAIMS = ("persistentVolumeClaim", "ephemeral")

Rule = Callable[[list[FieldError], str, Obj], None]


def volumes(errors: list[FieldError], path: str, found: Sequence[Obj]) -> dict[str, bool]:
    """Validate the volumes; return their names, each with whether it may be mapped as a device."""
    known: dict[str, bool] = {}
    for index, volume in enumerate(found):
        place = f"{path}[{index}]"
        name = volume.get("name")
        checks.named(errors, f"{place}.name", name, names.dns1123_label)
        if name in known:
            errors.append(duplicate(f"{place}.name", name))
        sources = [key for key, value in volume.items() if key != "name" and value is not None]
        if not sources:
            errors.append(required(place, "must specify a volume type"))
        errors.extend(forbidden_field(f"{place}.{key}", _ONE_SOURCE) for key in sources[1:])
        for key in sources[:1]:
            rule = _RULES.get(key)
            if rule is not None:
                rule(errors, f"{place}.{key}", volume[key])
        if name:
            known[name] = bool(sources) and sources[0] in _CLAIMS
    return known


def mode(errors: list[FieldError], path: str, value: int | None) -> None:
    if value is not None and not 0 <= value <= 0o777:
        errors.append(invalid(path, value, _BAD_MODE))


def _items(errors: list[FieldError], path: str, source: Obj) -> None:
    for index, item in enumerate(source.get("items") or ()):
        checks.needed(errors, f"{path}.items[{index}].key", item.get("key"))
        if not item.get("path"):
            errors.append(required(f"{path}.items[{index}].path"))
        else:
            checks.relative_path(errors, f"{path}.items[{index}].path", item["path"])
            if item["path"].startswith(".."):
                errors.append(invalid(f"{path}.items[{index}].path", item["path"], "must not start with '..'"))
        mode(errors, f"{path}.items[{index}].mode", item.get("mode"))


def _secret(errors: list[FieldError], path: str, source: Obj) -> None:
    checks.needed(errors, f"{path}.secretName", source.get("secretName"))
    mode(errors, f"{path}.defaultMode", source.get("defaultMode"))
    _items(errors, path, source)


def _config_map(errors: list[FieldError], path: str, source: Obj) -> None:
    checks.needed(errors, f"{path}.name", source.get("name"))
    mode(errors, f"{path}.defaultMode", source.get("defaultMode"))
    _items(errors, path, source)


def _downward(errors: list[FieldError], path: str, source: Obj) -> None:
    mode(errors, f"{path}.defaultMode", source.get("defaultMode"))
    for index, item in enumerate(source.get("items") or ()):
        place = f"{path}.items[{index}]"
        if not item.get("path"):
            errors.append(required(f"{place}.path"))
        else:
            checks.relative_path(errors, f"{place}.path", item["path"])
        if item.get("fieldRef") is not None:
            field_reference(errors, f"{place}.fieldRef", item["fieldRef"], _VOLUME_FIELDS)
            if item.get("resourceFieldRef") is not None:
                errors.append(
                    invalid(place, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
                )
        elif item.get("resourceFieldRef") is not None:
            resource_reference(errors, f"{place}.resourceFieldRef", item["resourceFieldRef"], in_volume=True)
        else:
            errors.append(required(f"{place}.fieldRef", "one of fieldRef and resourceFieldRef is required"))
        mode(errors, f"{place}.mode", item.get("mode"))


def _projected(errors: list[FieldError], path: str, source: Obj) -> None:
    mode(errors, f"{path}.defaultMode", source.get("defaultMode"))
    for index, part in enumerate(source.get("sources") or ()):
        place = f"{path}.sources[{index}]"
        given = [key for key, value in part.items() if value is not None]
        errors.extend(forbidden_field(f"{place}.{key}", _ONE_SOURCE) for key in given[1:])
        for key in given[:1]:
            value = part[key]
            if key in ("secret", "configMap"):
                checks.needed(errors, f"{place}.{key}.name", value.get("name"))
                _items(errors, f"{place}.{key}", value)
            elif key == "downwardAPI":
                _downward(errors, f"{place}.{key}", value)
            elif key == "serviceAccountToken":
                _token(errors, f"{place}.{key}", value)


def _token(errors: list[FieldError], path: str, source: Obj) -> None:
    seconds = source.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        errors.append(invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    elif seconds is not None and seconds > 1 << 32:
        errors.append(
            invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
        )
    if not source.get("path"):
        errors.append(required(f"{path}.path"))
    else:
        checks.relative_path(errors, f"{path}.path", source["path"])


def _host_path(errors: list[FieldError], path: str, source: Obj) -> None:
    where = source.get("path")
    if not where:
        errors.append(required(f"{path}.path"))
    elif ".." in where.split("/"):
        errors.append(invalid(f"{path}.path", where, "must not contain '..'"))
    if source.get("type") is not None and source["type"] not in _HOST_PATH_TYPES:
        errors.append(not_supported(f"{path}.type", source["type"], _HOST_PATH_TYPES))


def _empty_dir(errors: list[FieldError], path: str, source: Obj) -> None:
    limit = source.get("sizeLimit")
    if limit is not None:
        size = checks.quantity(limit)
        if size is None or size.milli() < 0:
            errors.append(forbidden_field(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity"))


def _ephemeral(errors: list[FieldError], path: str, source: Obj) -> None:
    template = source.get("volumeClaimTemplate")
    if template is None:
        errors.append(required(f"{path}.volumeClaimTemplate"))
        return
    claim_spec(errors, f"{path}.volumeClaimTemplate.spec", template.get("spec") or {})


def needs(*keys: str) -> Rule:
    def rule(errors: list[FieldError], path: str, source: Obj) -> None:
        for key in keys:
            checks.needed(errors, f"{path}.{key}", source.get(key))

    return rule


_RULES: dict[str, Rule] = {
    "secret": _secret,
    "configMap": _config_map,
    "downwardAPI": _downward,
    "projected": _projected,
    "hostPath": _host_path,
    "emptyDir": _empty_dir,
    "ephemeral": _ephemeral,
    "persistentVolumeClaim": needs("claimName"),
    "nfs": needs("server", "path"),
    "csi": needs("driver"),
    "iscsi": needs("targetPortal", "iqn"),
    "glusterfs": needs("endpoints", "path"),
    "rbd": needs("monitors", "image"),
    "cephfs": needs("monitors"),
    "cinder": needs("volumeID"),
    "awsElasticBlockStore": needs("volumeID"),
    "gcePersistentDisk": needs("pdName"),
    "azureFile": needs("secretName", "shareName"),
    "azureDisk": needs("diskName", "diskURI"),
    "vsphereVolume": needs("volumePath"),
    "gitRepo": needs("repository"),
    "flexVolume": needs("driver"),
    "quobyte": needs("registry", "volume"),
    "scaleIO": needs("gateway", "system"),
    "portworxVolume": needs("volumeID"),
    "image": needs("reference"),
}
