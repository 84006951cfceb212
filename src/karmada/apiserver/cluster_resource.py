"""The kind Cluster as the server serves it: its schema and table from karmada.api, its write rules from cluster_rules.

Unlike a custom resource it has rules of its own and takes updates without a resourceVersion. A write to /status stores
the status only, whoever writes it: agents have that right for their own cluster, and taints, labels and the way to the
cluster are its administrators'. What a status has is bounded there, since members and agents choose it.
"""

from __future__ import annotations

from dataclasses import replace

from karmada.api.cluster import Cluster
from karmada.api.cluster_bounds import bounded_status
from karmada.api.names import cluster_name_errors
from karmada.api.resources import resources_of
from karmada.apiserver import cluster_rules as rules
from karmada.kube.kinds.resource import Resource, Subresource
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import FieldError
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.types import Obj

CLUSTERS = GroupResource(Cluster.gvk.group, "clusters")
ID = "spec.id"
"""Id by which a cluster that joins finds out whether it has joined already, under another name."""
TYPE_INVALID = "FieldValueTypeInvalid"
_PROXY_VERBS = ("create", "delete", "get", "patch", "update")


def cluster_resource(clock: Clock, *, models: bool = True) -> Resource:
    """`models`: give clusters grades for their nodes (the gate CustomizedClusterResourceModeling)."""
    (resource,) = resources_of(Cluster)
    schema = resource.strategy

    def default_status(obj: Obj) -> None:
        assert schema.default_status is not None
        schema.default_status(obj)
        if "status" in obj:
            obj["status"] = bounded_status(obj["status"])

    def prepare_create(obj: Obj) -> None:
        obj.setdefault("spec", {})
        if models:
            rules.fill_models(obj, new=True)

    def prepare_update(obj: Obj, _old: Obj) -> None:
        obj.setdefault("spec", {})
        if models:
            rules.fill_models(obj, new=False)

    def validate(obj: Obj) -> list[FieldError]:
        by_schema = schema.validate({key: value for key, value in obj.items() if key != "status"})
        if _wrong_types(by_schema):
            return by_schema
        return _once([*rules.validate(obj), *by_schema])

    resource.strategy = replace(
        schema,
        default_status=default_status,
        prepare_create=prepare_create,
        prepare_update=prepare_update,
        validate=validate,
        validate_ratcheting=None,
        validate_status=lambda obj, old: _wrong_types(schema.validate_status(obj, old)),
        canonicalize=lambda obj: rules.tidy(obj, clock.now()),
        generation=lambda obj: obj.get("spec"),
        name_errors=cluster_name_errors,
        unconditional_update=True,
        fields={ID: lambda cluster: str((cluster.get("spec") or {}).get("id") or "")},
        indexed=frozenset({ID}),
    )
    resource.native = True
    proxied = GVK(Cluster.gvk.group, Cluster.gvk.version, "ClusterProxyOptions")
    resource.subresources["proxy"] = Subresource("proxy", verbs=_PROXY_VERBS, kind=proxied)
    return resource


def _wrong_types(errors: list[FieldError]) -> list[FieldError]:
    return [error for error in errors if error.reason == TYPE_INVALID]


def _once(errors: list[FieldError]) -> list[FieldError]:
    """Without the schema's errors of fields for which a rule has reported one already."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for error in errors:
        if (error.field, error.reason) not in seen:
            kept.append(error)
        seen.add((error.field, error.reason))
    return kept
