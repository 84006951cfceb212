"""Volumes, claims and the kinds of storage.k8s.io.

A claim's spec is fixed once it exists, but for a bound claim's size (it may only grow) and its attributes class; a
volume's source and a class's parameters are fixed too. Admission checks whether the class allows growth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karmada.kube.kinds import checks
from karmada.kube.kinds.claims import access_modes, claim_spec, default_claim_spec, share_data_source
from karmada.kube.kinds.filling import fill, fill_text, part
from karmada.kube.kinds.pod_warnings import VOLUME_PLUGINS, claim_warnings, fractional_bytes, node_selector_term
from karmada.kube.kinds.podspec import default_volume_source, node_selector
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import names
from karmada.kube.objects.errors import (
    FieldError,
    FieldErrors,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
    too_long,
)
from karmada.kube.objects.types import Obj

CLAIM_IMMUTABLE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_NOT_SOURCES = frozenset({
    "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
    "storageClassName", "volumeAttributesClassName", "volumeMode",
})  # fmt: skip
_MAX_PARAMETERS = 512
_MAX_PARAMETERS_SIZE = 256 * 1024


def default_claim(obj: Obj) -> None:
    spec = part(obj, "spec")
    default_claim_spec(spec)
    share_data_source(spec)


def default_volume(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill_text(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    checks.canonical_resources(spec.get("capacity"))
    default_volume_source(spec)
    for kind in ("iscsi", "rbd", "scaleIO", "azureFile", "cephfs"):
        secret = (spec.get(kind) or {}).get("secretRef")
        if secret and not secret.get("namespace") and (spec.get("claimRef") or {}).get("namespace"):
            secret["namespace"] = spec["claimRef"]["namespace"]


def default_storage_class(obj: Obj) -> None:
    fill_text(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def default_csi_driver(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill(
        spec,
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
    )
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def pending(obj: Obj) -> None:
    obj["status"] = {"phase": "Pending"}


def pending_volume(obj: Obj) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": obj["metadata"]["creationTimestamp"]}


# --- claims


def validate_claim(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    claim_spec(errors, "spec", obj.get("spec") or {})
    return errors


def update_claim(obj: Obj, old: Obj) -> list[FieldError]:
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    bound = (old.get("status") or {}).get("phase") == "Bound" or bool(was.get("volumeName"))
    errors = FieldErrors()
    munged = dict(new)
    if not was.get("volumeName"):
        # The volume controller binds a claim by writing its volume's name.
        checks.put_back(munged, was, "volumeName")
    if not was.get("storageClassName") and "storageClassName" not in was:
        checks.put_back(munged, was, "storageClassName")
    if bound:
        _growth(errors, new, was)
        munged["resources"] = was.get("resources")
        checks.put_back(munged, was, "volumeAttributesClassName")
    if any((munged.get(key) or None) != (was.get(key) or None) for key in {*munged, *was}):
        errors.append(forbidden_field("spec", CLAIM_IMMUTABLE))
    return errors


def _growth(errors: list[FieldError], new: Obj, was: Obj) -> None:
    requested, had = (checks.quantity(_size(spec)) for spec in (new, was))
    if requested is not None and had is not None and requested < had:
        detail = "field can not be less than status.capacity"
        errors.append(forbidden_field("spec.resources.requests.storage", detail))


def _size(spec: Obj) -> Any:
    return ((spec.get("resources") or {}).get("requests") or {}).get("storage") or "0"


# --- volumes


def source_of(spec: Obj) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in _NOT_SOURCES and value is not None}


def validate_volume(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    access_modes(errors, "spec", spec, "")
    capacity = spec.get("capacity") or {}
    if not capacity:
        errors.append(required("spec.capacity"))
        errors.append(not_supported("spec.capacity", None, ("storage",)))
    elif set(capacity) != {"storage"}:
        errors.append(not_supported("spec.capacity", _show(capacity), ("storage",)))
    for name, amount in capacity.items():
        parsed = checks.quantity(amount)
        if parsed is None:
            errors.append(invalid(f"spec.capacity[{name}]", amount, checks.BAD_QUANTITY))
        elif parsed.nano <= 0:
            errors.append(invalid(f"spec.capacity[{name}]", str(parsed), "must be greater than zero"))
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy not in ("Delete", "Recycle", "Retain"):
        errors.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, ("Delete", "Recycle", "Retain")))
    if spec.get("nodeAffinity") and spec["nodeAffinity"].get("required") is None:
        errors.append(required("spec.nodeAffinity.required", "must specify required node constraints"))
    elif spec.get("nodeAffinity"):
        node_selector(errors, "spec.nodeAffinity.required", spec["nodeAffinity"]["required"])
    sources = source_of(spec)
    if not sources:
        errors.append(required("spec", "must specify a volume type"))
    detail = "may not specify more than 1 volume type"
    errors.extend(forbidden_field(f"spec.{key}", detail) for key in list(sources)[1:])
    if "local" in sources and not spec.get("nodeAffinity"):
        errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    return errors


def _show(capacity: Obj) -> str:
    return ",".join(sorted(capacity))


def update_volume(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    if source_of(new) != source_of(was) and not _only_secret_changed(source_of(new), source_of(was)):
        errors.append(
            forbidden_field("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
        )
    if was.get("volumeMode") and new.get("volumeMode") != was.get("volumeMode"):
        errors.append(invalid("spec.volumeMode", new.get("volumeMode"), checks.IMMUTABLE))
    if was.get("nodeAffinity") and new.get("nodeAffinity") != was.get("nodeAffinity"):
        errors.append(invalid("spec.nodeAffinity", new.get("nodeAffinity"), checks.IMMUTABLE))
    return errors


def _only_secret_changed(new: Obj, was: Obj) -> bool:
    """Return whether nothing changed but the secret for a CSI volume's expansion, which may come later."""
    if set(new) != {"csi"} or set(was) != {"csi"}:
        return False
    secrets = ("controllerExpandSecretRef", "nodeExpandSecretRef")
    kept = [{k: v for k, v in source["csi"].items() if k not in secrets} for source in (new, was)]
    return kept[0] == kept[1] and all(key not in was["csi"] or new["csi"].get(key) for key in secrets)


# --- classes and drivers


def validate_storage_class(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    provisioner = obj.get("provisioner")
    if not provisioner:
        errors.append(required("provisioner", provisioner or ""))
    else:
        checks.add_invalid(errors, "provisioner", provisioner, names.qualified_name(provisioner.lower()))
    checks.one_of(errors, "reclaimPolicy", obj.get("reclaimPolicy"), ("Delete", "Retain"))
    checks.one_of(errors, "volumeBindingMode", obj.get("volumeBindingMode"), ("Immediate", "WaitForFirstConsumer"))
    _parameters(errors, obj.get("parameters") or {})
    return errors


def _parameters(errors: list[FieldError], parameters: Obj) -> None:
    if len(parameters) > _MAX_PARAMETERS:
        errors.append(too_long("parameters", _MAX_PARAMETERS))
    if "" in parameters:
        errors.append(invalid("parameters", "", "field can not be empty."))
    if sum(len(key) + len(value) for key, value in parameters.items()) > _MAX_PARAMETERS_SIZE:
        errors.append(too_long("parameters", _MAX_PARAMETERS_SIZE))


def _no_updates(obj: Obj, old: Obj, *keys: str) -> list[FieldError]:
    changed = [key for key in keys if (obj.get(key) or None) != (old.get(key) or None)]
    return [forbidden_field(key, f"updates to {key} are forbidden.") for key in changed]


def update_storage_class(obj: Obj, old: Obj) -> list[FieldError]:
    errors = _no_updates(obj, old, "parameters", "provisioner", "reclaimPolicy")
    checks.unchanged(errors, "volumeBindingMode", obj.get("volumeBindingMode"), old.get("volumeBindingMode"))
    return errors


def validate_attributes_class(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    checks.needed(errors, "driverName", obj.get("driverName"))
    if not obj.get("parameters"):
        errors.append(required("parameters", "must contain at least one key/value pair"))
    else:
        _parameters(errors, obj["parameters"])
    return errors


def update_attributes_class(obj: Obj, old: Obj) -> list[FieldError]:
    return _no_updates(obj, old, "driverName", "parameters")


_TOKEN_SECONDS = (600, 1 << 32)


def validate_csi_driver(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    allowed = ("File", "None", "ReadWriteOnceWithFSType")
    checks.one_of(errors, "spec.fsGroupPolicy", spec.get("fsGroupPolicy"), allowed)
    seen: set[str] = set()
    for index, request in enumerate(spec.get("tokenRequests") or ()):
        path, audience, seconds = (
            f"spec.tokenRequests[{index}]",
            request.get("audience") or "",
            request.get("expirationSeconds"),
        )
        if audience in seen:
            errors.append(duplicate(f"{path}.audience", audience))
        seen.add(audience)
        if seconds is not None and seconds < _TOKEN_SECONDS[0]:
            detail = "may not specify a duration less than 10 minutes"
            errors.append(invalid(f"{path}.expirationSeconds", seconds, detail))
        elif seconds is not None and seconds > _TOKEN_SECONDS[1]:
            detail = "may not specify a duration larger than 2^32 seconds"
            errors.append(invalid(f"{path}.expirationSeconds", seconds, detail))
    for mode in spec.get("volumeLifecycleModes") or ():
        checks.one_of(errors, "spec.volumeLifecycleModes", mode, ("Ephemeral", "Persistent"))
    return errors


def update_csi_driver(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    checks.keys_unchanged(errors, "spec", new, was, ("attachRequired", "volumeLifecycleModes"))
    return errors


def validate_csi_node(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    seen: set[str] = set()
    for index, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
        path = f"spec.drivers[{index}]"
        checks.named(errors, f"{path}.name", driver.get("name"), lambda name: names.dns1123_subdomain(name.lower()))
        checks.needed(errors, f"{path}.nodeID", driver.get("nodeID"))
        if driver.get("name") in seen:
            errors.append(duplicate(f"{path}.name", driver["name"]))
        seen.add(driver.get("name") or "")
    return errors


def validate_attachment(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    checks.named(errors, "spec.attacher", spec.get("attacher"), lambda name: names.dns1123_subdomain(name.lower()))
    source = spec.get("source") or {}
    given = [key for key in ("persistentVolumeName", "inlineVolumeSpec") if source.get(key)]
    if not given:
        errors.append(required("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
    elif len(given) > 1:
        detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        errors.append(forbidden_field("spec.source", detail))
    checks.named(errors, "spec.nodeName", spec.get("nodeName"), names.dns1123_subdomain)
    return errors


def update_attachment(obj: Obj, old: Obj) -> list[FieldError]:
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    return [] if new == was else [invalid("spec", new, checks.IMMUTABLE)]


def validate_capacity(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    checks.label_selector(errors, "nodeTopology", obj.get("nodeTopology"))
    name = obj.get("storageClassName")
    checks.named(errors, "storageClassName", name, names.dns1123_subdomain)
    for key in ("capacity", "maximumVolumeSize"):
        if obj.get(key) is not None:
            checks.resource_amount(errors, key, obj[key])
    return errors


def update_capacity(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    checks.keys_unchanged(errors, "", obj, old, ("nodeTopology", "storageClassName"))
    return errors


_BETA_CLASS, _BETA_OPTIONS = "volume.beta.kubernetes.io/storage-class", "volume.beta.kubernetes.io/mount-options"


def _annotated(obj: Obj, key: str, text: str) -> Iterator[str]:
    if key in (obj["metadata"].get("annotations") or {}):
        yield f"metadata.annotations[{key}]: deprecated since {text} attribute instead"


def claim_object_warnings(obj: Obj, _old: Obj | None) -> list[str]:
    annotated = _annotated(obj, _BETA_CLASS, 'v1.8; use "storageClassName"')
    return [*annotated, *claim_warnings("spec", obj.get("spec") or {})]


def volume_warnings(obj: Obj, _old: Obj | None) -> list[str]:
    spec = obj.get("spec") or {}
    found = [
        *_annotated(obj, _BETA_CLASS, 'v1.8; use "storageClassName"'),
        *_annotated(obj, _BETA_OPTIONS, 'v1.31; use "mountOptions"'),
    ]
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        found += node_selector_term(f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]", term)
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        text = "Instead, the recommended approach is to use dynamic provisioning."
        found.append(f"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. {text}")
    found += fractional_bytes("spec.capacity", spec.get("capacity"), "storage")
    return found + [
        f"spec.{kind}: {text}" for kind, text in VOLUME_PLUGINS.items() if text and spec.get(kind) is not None
    ]


def class_warnings(obj: Obj, _old: Obj | None) -> list[str]:
    topologies = obj.get("allowedTopologies") or ()
    terms = [(f"allowedTopologies[{i}]", term.get("matchLabelExpressions")) for i, term in enumerate(topologies)]
    found = (w for path, terms in terms for w in node_selector_term(path, {"matchExpressions": terms}))
    return [text.replace(".matchExpressions[", ".matchLabelExpressions[", 1) for text in found]


PERSISTENT_VOLUME_CLAIM = Strategy(
    warnings=claim_object_warnings,
    default=default_claim,
    prepare_create=pending,
    validate=validate_claim,
    validate_update=update_claim,
    returns_deleted=True,
)
PERSISTENT_VOLUME = Strategy(
    warnings=volume_warnings,
    default=default_volume,
    prepare_create=pending_volume,
    validate=validate_volume,
    validate_update=update_volume,
    returns_deleted=True,
)
STORAGE_CLASS = Strategy(
    warnings=class_warnings,
    default=default_storage_class,
    validate=validate_storage_class,
    validate_update=update_storage_class,
    returns_deleted=True,
)
CSI_DRIVER = Strategy(
    counts_from_creation=False,
    default=default_csi_driver,
    validate=validate_csi_driver,
    validate_update=update_csi_driver,
    generation=lambda obj: obj.get("spec"),
    unconditional_update=False,
    returns_deleted=True,
)
CSI_NODE = Strategy(validate=validate_csi_node, unconditional_update=False, returns_deleted=True)
VOLUME_ATTACHMENT = Strategy(
    prepare_create=lambda obj: obj.__setitem__("status", {"attached": False}),
    validate=validate_attachment,
    validate_update=update_attachment,
    unconditional_update=False,
    returns_deleted=True,
)
VOLUME_ATTRIBUTES_CLASS = Strategy(validate=validate_attributes_class, validate_update=update_attributes_class)
CSI_STORAGE_CAPACITY = Strategy(validate=validate_capacity, validate_update=update_capacity)
