"""Which images an installation runs.

One image holds all programs, under the names that Karmada's have; etcd has its own. Kubernetes' programs are in ours,
too, unless a flag says from where to take the official ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from karmada.version import VERSION

REPOSITORY: Final = "docker.io/pykarmada/karmada"
TAG: Final = f"v{VERSION}"
IMAGE: Final = f"{REPOSITORY}:{TAG}"
"""All components, as commands: /bin/karmada, /bin/karmada-scheduler, /bin/kube-apiserver and so on."""
KUBERNETES_REGISTRY: Final = "registry.k8s.io"
KUBERNETES_TAG: Final = "v1.35.2"
ETCD_TAG: Final = "3.6.6-0"
MIRRORS: Final[Mapping[str, str]] = {"cn": "registry.cn-hangzhou.aliyuncs.com/google_containers"}
"""Registries that mirror Kubernetes' images, by country."""
KUBERNETES_PROGRAMS: Final[Mapping[str, str]] = {
    "karmada-apiserver": "kube-apiserver",
    "karmada-kube-controller-manager": "kube-controller-manager",
}
"""Components whose programs Kubernetes publishes, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSource:
    """Where images come from; an image that is named for one component takes precedence."""

    private_registry: str = ""
    kubernetes_registry: str = ""
    kubernetes_tag: str = ""
    """Empty: KUBERNETES_TAG."""
    mirror_country: str = ""
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()

    @property
    def official(self) -> bool:
        """Return whether Kubernetes' own programs are taken instead of those in our image."""
        return bool(self.kubernetes_registry or self.kubernetes_tag or MIRRORS.get(self.mirror_country))

    @property
    def registry(self) -> str:
        """Registry of etcd and of Kubernetes' programs."""
        candidates = (self.kubernetes_registry, MIRRORS.get(self.mirror_country, ""), self.private_registry)
        return next(filter(None, candidates), KUBERNETES_REGISTRY).rstrip("/")

    def etcd(self, named: str = "") -> str:
        return named or f"{self.registry}/etcd:{ETCD_TAG}"

    def component(self, name: str, named: str = "") -> str:
        program = KUBERNETES_PROGRAMS.get(name, "")
        if named:
            return named
        if program and self.official:
            return f"{self.registry}/{program}:{self.kubernetes_tag or KUBERNETES_TAG}"
        return in_registry(IMAGE, self.private_registry)


def in_registry(image: str, registry: str) -> str:
    """Return the image of that name in another registry; the same without one."""
    return f"{registry.rstrip('/')}/{image.rpartition('/')[2]}" if registry else image
