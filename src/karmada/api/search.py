"""search.karmada.io: which resources of the member clusters are kept at hand for search and for the proxy.

Search and Proxying, the other names of the group, are paths to connect to, not objects; they have no type here.
"""

from __future__ import annotations

from msgspec import field

from karmada.api.common import Condition, SecretReference, Struct
from karmada.api.kind import Resource, kind
from karmada.api.placement import ClusterAffinity

V1ALPHA1 = "search.karmada.io/v1alpha1"


class ResourceSelector(Struct):
    """Selects resources of one kind."""

    api_version: str
    """The group and version of the resources."""
    kind: str
    """The kind of the resources."""
    namespace: str = ""
    """Where they are; empty for everywhere."""


class OpenSearchConfig(Struct):
    """An OpenSearch cluster."""

    addresses: list[str]
    """The URLs of its nodes."""
    secret_ref: SecretReference
    """The Secret to log in with, under the keys userName and password."""


class BackendStoreConfig(Struct):
    """Where resources are kept."""

    open_search: OpenSearchConfig | None = None
    """Send them to OpenSearch, too."""


class ResourceRegistrySpec(Struct):
    """Which resources of which clusters."""

    target_cluster: ClusterAffinity
    """The clusters."""
    resource_selectors: list[ResourceSelector]
    """The resources."""
    backend_store: BackendStoreConfig | None = None
    """Where they are kept; in memory when absent."""


class ResourceRegistryStatus(Struct):
    """The observed status."""

    conditions: list[Condition] = []
    """Whether resources are being gathered."""


@kind(
    V1ALPHA1,
    plural="resourceregistries",
    scope="Cluster",
    categories=(),
    subresources=["status"],
    aggregated=True,
)
class ResourceRegistry(Resource, kw_only=True):
    """Which resources of the member clusters are cached."""

    spec: ResourceRegistrySpec | None = None
    """Which resources of which clusters."""
    status: ResourceRegistryStatus = field(default_factory=ResourceRegistryStatus)
    """The observed status."""
