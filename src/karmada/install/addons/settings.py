"""What the manifests of an addon depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from karmada.install.images import ImageSource
from karmada.install.names import DOMAIN, NAMESPACE
from karmada.install.options import Component

PRIORITY = "system-node-critical"
USUAL = Component(image="", replicas=1, priority_class=PRIORITY, extra_args=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    namespace: str = NAMESPACE
    domain: str = DOMAIN
    images: ImageSource = field(default_factory=ImageSource)
    components: Mapping[str, Component] = field(default_factory=dict)
    """Image, replicas and priority class, by the name of the addon."""
    cluster: str = ""
    """The member of an estimator."""
    member_kubeconfig: bytes = b""
    """Kubeconfig by which the estimator reaches the member."""
    store: Sequence[str] = ()
    """The flags by which the API server of the control plane reaches its etcd."""
    authority: bytes = b""
    """Authority by which the control plane verifies servers in the host cluster."""

    hosts: Sequence[str] = ()
    """Names by which browsers reach the dashboard, besides those of its Service."""
    serving_secret: str = ""
    """The Secret (kubernetes.io/tls) with the dashboard's certificate; without it every pod makes one for itself."""

    def of(self, addon: str) -> Component:
        return self.components.get(addon, USUAL)
