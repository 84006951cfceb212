"""All kinds as CustomResourceDefinitions.

`builtin_crds` are all of them, to serve from the embedded server. `crd_manifests` are those that a real kube-apiserver
needs: without the kinds that Karmada serves from API servers of its own, unless they are requested.

Bindings have two versions; the way from one to the other is a webhook, as far as the manifest goes. The embedded server
calls the function instead (karmada.api.resources).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import NamedTuple

from karmada.api.kind import KindInfo, Resource, registered
from karmada.api.schema import kind_schema
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import Definitions

GROUPS = (
    "apps", "autoscaling", "cluster", "config", "multicluster", "networking", "policy", "remedy", "search", "work",
    "work_v1alpha1",
)  # fmt: skip
"""The modules that hold kinds."""
CONVERT_URL = "https://karmada-webhook.karmada-system.svc:443/convert"


class Webhook(NamedTuple):
    """Who converts bindings."""

    url: str = CONVERT_URL
    ca_bundle: bytes = b""
    """PEM; empty: the authorities that the API server's system trusts."""


def all_kinds() -> list[KindInfo]:
    """Every version of every kind, by group, plural and version."""
    for module in GROUPS:
        import_module(f"karmada.api.{module}")
    return sorted(registered(), key=lambda info: (info.gvk.group, info.plural, info.gvk.version))


def builtin_crds(webhook: Webhook = Webhook()) -> list[Obj]:  # noqa: B008 - it cannot be changed
    """The CRDs of all kinds, by name; made anew at every call, except for their schemas, which are shared."""
    return _crds(all_kinds(), webhook)


def crd_manifests(*, everything: bool = False, webhook: Webhook = Webhook()) -> list[Obj]:  # noqa: B008
    """The CRDs for a real kube-apiserver, by name; with `everything` also those of the aggregated API servers."""
    return _crds([info for info in all_kinds() if everything or not info.aggregated], webhook)


def crd_of(cls: type[Resource], webhook: Webhook = Webhook()) -> Obj:  # noqa: B008
    """The CRD of one kind, with all its versions."""
    group_kind = cls.gvk.group_kind
    return _crds([info for info in all_kinds() if info.gvk.group_kind == group_kind], webhook)[0]


def _crds(infos: Iterable[KindInfo], webhook: Webhook) -> list[Obj]:
    _make_schemas()
    by_name: dict[str, list[KindInfo]] = {}
    for info in infos:
        by_name.setdefault(f"{info.plural}.{info.gvk.group}", []).append(info)
    return [_crd(name, versions, webhook) for name, versions in sorted(by_name.items())]


@cache
def _make_schemas() -> None:
    """Of all kinds at once, so that the built-in definitions in them are parsed once and then dropped."""
    held = Definitions.load().raws()
    for info in all_kinds():
        kind_schema(info.type)
    del held


def _crd(name: str, versions: list[KindInfo], webhook: Webhook) -> Obj:
    stored = next(info for info in versions if info.storage)
    spec: Obj = {
        "group": stored.gvk.group,
        "names": _names(stored),
        "scope": "Namespaced" if stored.namespaced else "Cluster",
        "versions": [_version(info) for info in versions],
    }
    if len(versions) > 1:
        spec["conversion"] = _conversion(webhook)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": spec,
    }


def _names(info: KindInfo) -> Obj:
    names: Obj = {
        "kind": info.gvk.kind,
        "listKind": info.list_kind,
        "plural": info.plural,
        "singular": info.singular,
    }
    if info.short:
        names["shortNames"] = list(info.short)
    if info.categories:
        names["categories"] = list(info.categories)
    return names


def _version(info: KindInfo) -> Obj:
    version: Obj = {
        "name": info.gvk.version,
        "served": True,
        "storage": info.storage,
        "schema": {"openAPIV3Schema": kind_schema(info.type)},
    }
    if info.columns:
        version["additionalPrinterColumns"] = [column.to_obj() for column in info.columns]
    if info.subresources is not None:
        version["subresources"] = {name: {} for name in info.subresources}
    return version


def _conversion(webhook: Webhook) -> Obj:
    client: Obj = {"url": webhook.url}
    if webhook.ca_bundle:
        client["caBundle"] = base64.b64encode(webhook.ca_bundle).decode()
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
    }
