"""Admission of Clusters: a user that sets a secretRef must be allowed to read the Secret.

The control plane sends the token in the Secret that a Cluster names to the address that it names. So a user that
creates a Cluster, or changes its Secrets or its endpoint, could have any Secret of the control plane sent anywhere.
Such a write needs the right to `get` those Secrets, and the connection must be encrypted.
"""

from __future__ import annotations

from typing import Final

from karmada.apiserver.cluster_resource import CLUSTERS
from karmada.kube.objects.errors import Forbidden, Invalid, invalid
from karmada.kube.objects.gvk import GroupKind
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes, Plugin
from karmada.kube.server.auth.interface import Decides
from karmada.kube.server.auth.rbac import AuthzAttributes

_REFERENCES: Final = ("secretRef", "impersonatorSecretRef")
_WAY: Final = ("apiEndpoint", "proxyURL", "proxyHeader", "insecureSkipTLSVerification")
_KIND: Final = GroupKind(CLUSTERS.group, "Cluster")


class ClusterCredentials(Plugin):
    """Admission plug-in for Clusters."""

    name = "ClusterCredentials"
    mutates = False

    def __init__(self, rights: Decides, *, allow_insecure: bool = False) -> None:
        self._rights = rights
        self._allow_insecure = allow_insecure

    def handles(self, attributes: Attributes) -> bool:
        """Return whether it writes a spec; writes to /status leave that as it is."""
        return (
            attributes.group_resource == CLUSTERS
            and attributes.operation in (CREATE, UPDATE)
            and not attributes.subresource
        )

    async def validate(self, attributes: Attributes) -> None:
        new = (attributes.obj or {}).get("spec") or {}
        old = (attributes.old or {}).get("spec") or {}
        self._check_way(attributes, new, old)
        moved = any(new.get(field) != old.get(field) for field in _WAY)
        for field in _REFERENCES:
            if new.get(field) and (moved or new.get(field) != old.get(field)):
                await self._check_secret(attributes, field, new[field])

    def _check_way(self, attributes: Attributes, new: Obj, old: Obj) -> None:
        endpoint = str(new.get("apiEndpoint") or "")
        if self._allow_insecure or endpoint == old.get("apiEndpoint") or not endpoint.lower().startswith("http://"):
            return
        detail = "credentials would be sent unencrypted: use https, or start the server with --allow-insecure-members"
        raise Invalid.of(_KIND, attributes.name, [invalid("spec.apiEndpoint", endpoint, detail)])

    async def _check_secret(self, attributes: Attributes, field: str, reference: Obj) -> None:
        namespace, name = reference.get("namespace") or "", reference.get("name") or ""
        wanted = AuthzAttributes("get", "", "v1", "secrets", namespace=namespace, name=name)
        if not attributes.user.is_master and not (await self._rights.decide(attributes.user, wanted)).allowed:
            why = f'spec.{field}: user "{attributes.user.name}" cannot get the Secret {namespace}/{name} that it names'
            raise Forbidden.of(CLUSTERS, attributes.name, why)
