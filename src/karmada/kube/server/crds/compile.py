"""From a CustomResourceDefinition to what is served: a Resource per version, and the status that says so.

Everything here is a pure function of definitions. What a custom resource needs of the handler chain goes through its
Strategy: `default` prunes, drops nulls and fills in defaults; `validate` and `validate_ratcheting` apply the schema.
A stored object was made to fit the schema of the storage version when it was written, so reading it in that version
costs nothing, until the definition changes (by its generation): from then on objects are pruned and defaulted on the
way out, too. Read in another version, an object keeps what that version's schema knows and gets no defaults of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any

from karmada.kube.kinds.customresourcedefinition import approval, is_protected, storage_version
from karmada.kube.kinds.resource import Resource, Strategy, Subresource
from karmada.kube.kinds.scale import SCALE, scale_of
from karmada.kube.objects import meta
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import FieldError, InternalError
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.jsonpath import Path, compile_path
from karmada.kube.objects.types import Obj
from karmada.kube.schema.conforming import conforming
from karmada.kube.schema.defaulting import apply_defaults, prune
from karmada.kube.schema.node import Node
from karmada.kube.schema.structural import compile_schema
from karmada.kube.schema.validation import validate
from karmada.kube.server.handlers.discovery import version_order

TERMINATING_CREATE = "create not allowed while custom resource definition is terminating"

Convert = Callable[[list[Obj], str], Awaitable[list[Obj]]]
"""(objects, apiVersion) → the objects in that version."""


# Resources.


def crd_resources(crd: Obj, convert: Convert | None = None) -> list[Resource]:
    """Return one Resource for each served version; `convert` is for conversion by webhook."""
    versions = crd["spec"]["versions"]
    schemas = {version["name"]: _Schema(version["schema"]["openAPIV3Schema"]) for version in versions}
    return [_resource(crd, version, schemas, convert) for version in versions if version.get("served")]


def _resource(crd: Obj, version: Obj, schemas: dict[str, _Schema], convert: Convert | None) -> Resource:
    spec, name = crd["spec"], version["name"]
    versions, names = spec["versions"], _served_names(crd)
    gvk = GVK(spec["group"], name, names["kind"])
    storage = GVK(spec["group"], storage_version(crd), names["kind"])
    by_webhook = (spec.get("conversion") or {}).get("strategy") == "Webhook"
    if by_webhook and convert is None:
        raise ValueError(f"{meta.name(crd)} converts by webhook, but there is nothing to call it with")
    schema = schemas[name]
    changed = meta.generation(crd) > 1
    converted = gvk != storage or changed or (len(versions) > 1 and _stored_versions(crd) != {name})
    return Resource(
        gvk=gvk,
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular") or "",
        list_kind=names.get("listKind") or "",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=_subresources(version),
        schema=schema.node,
        strategy=_strategy(version, schema),
        storage=storage,
        storage_resource=GroupResource(spec["group"], names["plural"]),
        to_storage=None if gvk == storage else _writer(schemas[storage.version], storage.api_version),
        from_storage=_reader(schemas, gvk, changed) if converted else None,
        convert=convert if by_webhook and converted else None,
        custom=True,
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        raw_schema=schema.raw,
        deprecation=deprecation_warning(crd, version, gvk),
    )


def _stored_versions(crd: Obj) -> set[str]:
    """Return the versions that objects may be stored in; none while that is not recorded."""
    return set((crd.get("status") or {}).get("storedVersions") or ())


def _served_names(crd: Obj) -> Obj:
    accepted: Obj = (crd.get("status") or {}).get("acceptedNames") or {}
    names: Obj = accepted if accepted.get("plural") and accepted.get("kind") else crd["spec"]["names"]
    return names


class _Schema:
    """A version's schema, compiled when it is first needed."""

    __slots__ = ("node", "raw")

    def __init__(self, raw: Obj) -> None:
        self.raw = raw
        self.node: Callable[[], Node] = cache(partial(compile_schema, raw))

    def default(self, obj: Obj) -> None:
        """In place."""
        node = self.node()
        settled = conforming(node, obj)
        prune(node, obj, nulls=True, settled=settled)
        apply_defaults(node, obj, settled)

    def prune(self, obj: Obj) -> None:
        """In place: what another version's object has and this version does not know."""
        node = self.node()
        prune(node, obj, settled=conforming(node, obj))

    def default_status(self, obj: Obj) -> None:
        """In place, and of the status alone."""
        part = {"status": obj["status"]} if "status" in obj else {}
        self.default(part)
        if "status" in part:
            obj["status"] = part["status"]
        else:
            obj.pop("status", None)

    def validate(self, obj: Obj) -> list[FieldError]:
        node = self.node()
        return validate(node, obj, None, conforming(node, obj))

    def validate_change(self, obj: Obj, old: Obj) -> list[FieldError]:
        """Parts that are those of the old object need no test: they are as they were."""
        node = self.node()
        changed = {key: value for key, value in obj.items() if value is not old.get(key)}
        return validate(node, obj, old, conforming(node, changed))


def _writer(storage: _Schema, api_version: str) -> Callable[[Obj], Obj]:
    """To the storage version: its schema decides what is kept, and its defaults are those that readers see."""

    def write(obj: Obj) -> Obj:
        made = copy_json(obj)
        made["apiVersion"] = api_version
        storage.default(made)
        return made

    return write


def _reader(schemas: dict[str, _Schema], gvk: GVK, always: bool) -> Callable[[Obj], Obj]:
    """From the version that an object is stored in, with that version's defaults if it may lack some (`always`)."""

    def read(obj: Obj) -> Obj:
        stored = obj["apiVersion"].rpartition("/")[2]
        if stored == gvk.version and not always:
            return obj
        made = copy_json(obj)
        if always and stored in schemas:
            schemas[stored].default(made)
        if stored != gvk.version:
            made["apiVersion"] = gvk.api_version
            schemas[gvk.version].prune(made)
        return made

    return read


def _subresources(version: Obj) -> dict[str, Subresource]:
    declared = version.get("subresources") or {}
    made: dict[str, Subresource] = {}
    if declared.get("status") is not None:
        made["status"] = Subresource("status")
    if declared.get("scale") is not None:
        made["scale"] = Subresource("scale", kind=SCALE)
    return made


_WITHOUT_STATUS = frozenset({"apiVersion", "kind", "metadata", "status"})
_WITH_STATUS = frozenset({"apiVersion", "kind", "metadata"})


def _strategy(version: Obj, schema: _Schema) -> Strategy:
    declared = version.get("subresources") or {}
    ignored = _WITHOUT_STATUS if declared.get("status") is not None else _WITH_STATUS
    scale = declared.get("scale")
    return Strategy(
        default=schema.default,
        default_status=schema.default_status,
        validate=schema.validate,
        validate_ratcheting=schema.validate_change,
        validate_status=schema.validate_change,
        warnings=_warnings,
        generation=lambda obj: {key: value for key, value in obj.items() if key not in ignored},
        status_only=True,
        unconditional_update=False,
        fields=dict(_selectable(field["jsonPath"]) for field in version.get("selectableFields") or ()),
        scale=ScalePaths.of(scale) if scale is not None else None,
    )


def deprecation_warning(crd: Obj, version: Obj, gvk: GVK) -> str:
    """Return what every request to a deprecated version is warned with; empty when it is not deprecated."""
    if not version.get("deprecated"):
        return ""
    own: str = version.get("deprecationWarning") or ""
    if own:
        return own
    text, order = f"{gvk.api_version} {gvk.kind} is deprecated", version_order(gvk.version)
    usable = [v["name"] for v in crd["spec"]["versions"] if v.get("served") and not v.get("deprecated")]
    better = [name for name in usable if version_order(name) > order]
    return f"{text}; use {gvk.group}/{max(better, key=version_order)} {gvk.kind}" if better else text


_STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})


def _warnings(obj: Obj, old: Obj | None) -> list[str]:
    finalizers = obj["metadata"].get("finalizers")
    if not finalizers:
        return []
    known = _STANDARD_FINALIZERS | set((old or {}).get("metadata", {}).get("finalizers") or ())
    return [
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name including a path (/) '
        "to avoid accidental conflicts with other finalizer writers"
        for name in finalizers
        if "/" not in name and name not in known
    ]


def _selectable(json_path: str) -> tuple[str, Callable[[Obj], str]]:
    path = compile_path(json_path)

    def get(obj: Obj) -> str:
        value = path.first(obj)
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return json_path.lstrip("."), get


class ScalePaths:
    """The replicas of a custom resource, found by the paths of its scale subresource."""

    __slots__ = ("_selector", "_spec", "_status", "spec_fields")

    def __init__(self, spec: str, status: str, selector: str = "") -> None:
        self._spec = compile_path(spec)
        self._status = compile_path(status)
        self._selector = compile_path(selector) if selector else None
        fields = self._spec.fields
        if not fields:
            raise ValueError(f"{spec} is not a path of plain fields")
        self.spec_fields: tuple[str, ...] = fields
        """Where replicas are set: what the scale subresource's manager owns."""

    @classmethod
    def of(cls, scale: Mapping[str, Any]) -> ScalePaths:
        return cls(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or "")

    def get(self, obj: Obj) -> Obj:
        """Return the Scale of an object; InternalError when the object does not say how many replicas it wants."""
        if self._spec.first(obj) is None:
            raise InternalError.of(f'the spec replicas field "{self._spec.text}" does not exist')
        return self.view(obj)

    def view(self, obj: Obj) -> Obj:
        """Return the Scale that a write to the subresource starts from: no replicas where the object says nothing."""
        status: Obj = {"replicas": _integer(self._status, obj)}
        selector = self._selector.first(obj) if self._selector is not None else None
        if selector is not None:
            if not isinstance(selector, str):
                raise InternalError.of(f"{self._selector_text()} accessor error: {selector!r} is not a string")
            if selector:
                status["selector"] = selector
        return scale_of(obj, {"replicas": _integer(self._spec, obj)}, status)

    def _selector_text(self) -> str:
        return self._selector.text if self._selector is not None else ""

    def set(self, obj: Obj, replicas: int) -> None:
        """In place."""
        *parents, last = self.spec_fields
        place = obj
        for name in parents:
            below = place.get(name)
            if not isinstance(below, dict):
                below = place[name] = {}
            place = below
        place[last] = replicas


def _integer(path: Path, obj: Obj) -> int:
    value = path.first(obj)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise InternalError.of(
            f"{path.text} accessor error: {value!r} is of the type {type(value).__name__}, expected int64"
        )
    return value


# Status.


def name_conflicts(crd: Obj, others: Iterable[Obj]) -> tuple[Obj, Obj]:
    """Return the names a definition gets and its NamesAccepted condition; names in conflict stay what they were."""
    group, own = crd["spec"]["group"], meta.name(crd)
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other["spec"]["group"] == group and meta.name(other) != own:
            taken = (other.get("status") or {}).get("acceptedNames") or {}
            resources.update((taken.get("plural") or "", taken.get("singular") or "", *(taken.get("shortNames") or ())))
            kinds.update((taken.get("kind") or "", taken.get("listKind") or ""))
    return _accept(crd, resources - {""}, kinds - {""})


def _accept(crd: Obj, resources: set[str], kinds: set[str]) -> tuple[Obj, Obj]:
    wanted: Obj = crd["spec"]["names"]
    before: Obj = (crd.get("status") or {}).get("acceptedNames") or {}
    accepted: Obj = {key: value for key, value in before.items() if value}
    reason = message = ""
    checks = (
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("shortNames", "ShortNamesConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    )
    for key, conflict, used in checks:
        value = wanted.get(key)
        requested = value if isinstance(value, list) else [value] if value else []
        had = before.get(key)
        kept = had if isinstance(had, list) else [had]
        clashes = [f'"{name}" is already in use' for name in requested if name in used and name not in kept]
        if clashes:
            reason, message = conflict, clashes[0] if len(clashes) == 1 else f"[{', '.join(clashes)}]"
        elif value:
            accepted[key] = value
        else:
            accepted.pop(key, None)
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    else:
        accepted.pop("categories", None)
    if reason:
        return accepted, _condition("NamesAccepted", "False", reason, message)
    return accepted, _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")


def _condition(kind: str, status: str, reason: str, message: str) -> Obj:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def established_status(crd: Obj, others: Iterable[Obj], now: float) -> Obj:
    """Return the status a definition should have, given the others: equal to the present one when all is done."""
    status: Obj = crd.get("status") or {}
    present: list[Obj] = status.get("conditions") or []
    accepted, names_accepted = name_conflicts(crd, others)
    fresh = [names_accepted, _established(present, names_accepted)]
    if is_protected(crd["spec"]["group"]):
        reason, message = approval(crd)
        conforms = "True" if reason == "ApprovedAnnotation" else "False"
        fresh.append(_condition("KubernetesAPIApprovalPolicyConformant", conforms, reason, message))
    conditions = present
    for condition in fresh:
        conditions = meta.set_condition(conditions, condition, now)
    stored = list(status.get("storedVersions") or ())
    if (storage := storage_version(crd)) not in stored:
        stored.append(storage)
    return {
        **status,
        "conditions": sorted(conditions, key=_condition_order),
        "acceptedNames": accepted,
        "storedVersions": stored,
    }


def _established(present: list[Obj], names_accepted: Obj) -> Obj:
    """Once established, always established: objects may exist."""
    if names_accepted["status"] == "True" or meta.has_condition(present, "Established"):
        return _condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
    return _condition("Established", "False", "NotAccepted", "not all names are accepted")


def _condition_order(condition: Obj) -> int:
    return {"NamesAccepted": 0, "Established": 1}.get(condition.get("type", ""), 2)


def is_served(crd: Obj) -> bool:
    """Return whether requests are answered: once names are accepted, as long as the definition is established."""
    conditions = (crd.get("status") or {}).get("conditions")
    return meta.has_condition(conditions, "Established") or meta.has_condition(conditions, "NamesAccepted")


def is_terminating(crd: Obj) -> bool:
    return meta.is_deleting(crd) or meta.has_condition((crd.get("status") or {}).get("conditions"), "Terminating")


def terminating_status(crd: Obj, reason: str, message: str, now: float, *, done: bool = False) -> Obj:
    """Return the status while a definition's objects are being deleted, or (done) once none is left."""
    status: Obj = crd.get("status") or {}
    condition = _condition("Terminating", "False" if done else "True", reason, message)
    return {**status, "conditions": meta.set_condition(status.get("conditions"), condition, now)}
