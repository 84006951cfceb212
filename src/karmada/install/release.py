"""What the jobs of the Helm chart do: the Secrets of a release, and the objects of its control plane.

The certificates are those of `init`, under the names that Karmada's chart has for their Secrets: `<release>-cert`,
`<release>-webhook-cert` and `<release>-kubeconfig`. They are issued once; every upgrade looks at them, and renews a
leaf that nears its end or lacks a name.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from karmada.install.addons.catalog import ADDONS
from karmada.install.applying import apply_all, shown
from karmada.install.certificates import ADMIN, CA, Certificates, Report, issue
from karmada.install.control_plane import CLUSTERS_API, control_plane_objects
from karmada.install.names import API_PORT, API_SERVER, service_host
from karmada.install.options import Options, options_from
from karmada.install.secrets import admin_kubeconfig, certificates_in, files
from karmada.install.waiting import until_available, until_served
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.writes import Outcome, delete_if_exists, get_if_exists

_KARMADAS_AUTHORITY: Final = "server-ca"
"""Name of the authority of servers and clients in Karmada's chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    name: str
    """In front of the names of its objects."""
    helm_name: str
    namespace: str
    domain: str
    hosts: Sequence[str]
    """Names and addresses of the servers' certificate, besides those inside of the cluster."""
    seconds: float
    """How long certificates are valid."""
    etcd_members: int
    """0: etcd is not part of it."""

    @property
    def server(self) -> str:
        """URL by which components reach the API server."""
        return f"https://{service_host(self.service(API_SERVER), self.namespace, self.domain)}:{API_PORT}"

    def service(self, component: str) -> str:
        """Return the name that a component's Service has in this release."""
        return f"{self.name}-{component.removeprefix('karmada-')}"

    def options(self) -> Options:
        """Return the flags of `init` that stand for the same certificates."""
        given: dict[str, object] = {
            "namespace": self.namespace,
            "host-cluster-domain": self.domain,
            "all-in-one": not self.etcd_members,
            "cert-external-dns": ",".join(host for host in self.hosts if not _is_address(host)),
            "cert-external-ip": ",".join(host for host in self.hosts if _is_address(host)),
            "cert-validity-period": self.seconds,
        }
        if self.etcd_members:
            given |= {"etcd-replicas": self.etcd_members, "etcd-storage-mode": "PVC"}
        return options_from(given)


def secret_names(release: str) -> tuple[str, str, str]:
    """Certificates, the webhook's, and the kubeconfig."""
    return f"{release}-cert", f"{release}-webhook-cert", f"{release}-kubeconfig"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def release_secrets(release: Release, certificates: Certificates) -> list[Obj]:
    admin, authority = certificates[ADMIN], certificates[CA]
    theirs = {f"{_KARMADAS_AUTHORITY}.crt": authority.cert_pem}
    contents: Sequence[Mapping[str, bytes]] = (
        {**files(certificates), **theirs},
        {"tls.crt": admin.cert_pem, "tls.key": admin.key_pem},
        {"kubeconfig": admin_kubeconfig(release.server, certificates)},
    )
    return [_secret(release, name, held) for name, held in zip(secret_names(release.name), contents, strict=True)]


def _secret(release: Release, name: str, held: Mapping[str, bytes]) -> Obj:
    """Helm may adopt it, when the release's values have certificates of their own later."""
    labels = {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": release.helm_name}
    owner = {
        "meta.helm.sh/release-name": release.helm_name,
        "meta.helm.sh/release-namespace": release.namespace,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": name, "namespace": release.namespace, "labels": labels, "annotations": owner},
        "data": {file: base64.b64encode(content).decode() for file, content in held.items()},
    }


async def write_secrets(client: Client, release: Release, now: float, report: Report) -> dict[str, Outcome]:
    """Issue what is missing or nears its end; the outcome for each Secret."""
    kept = await get_if_exists(client, SECRETS, secret_names(release.name)[0], release.namespace)
    certificates = issue(release.options(), (), certificates_in(kept), now, report)
    return {
        secret["metadata"]["name"]: await _write(client, release, secret)
        for secret in release_secrets(release, certificates)
    }


async def _write(client: Client, release: Release, secret: Obj) -> Outcome:
    """With no more than the rights to get, create and update."""
    existing = await get_if_exists(client, SECRETS, secret["metadata"]["name"], release.namespace)
    if existing is None:
        await client.create(SECRETS, secret)
        return "created"
    if existing.get("data") == secret["data"]:
        return "unchanged"
    await client.update(SECRETS, {**existing, "data": secret["data"]})
    return "updated"


def release_objects(release: Release, authority: bytes, addons: Sequence[str] = ()) -> list[Obj]:
    """Return the objects of a release of separate components, which reach each other by Services named after it."""
    found = control_plane_objects(
        release.options(),
        release.server,
        authority,
        webhook_service=release.service("karmada-webhook"),
        aggregated=release.service("karmada-aggregated-apiserver"),
    )
    for name in addons:
        found += ADDONS[name].served_by(release.service(name), release.namespace, release.domain, authority)
    return found


async def write_objects(
    control: Client,
    release: Release,
    authority: bytes,
    clock: Clock,
    report: Report,
    *,
    addons: Sequence[str] = (),
    seconds: float,
) -> None:
    """Wait for the API server, apply what it needs, and wait until clusters and what add-ons have are served."""
    await until_served(control, "/readyz", seconds, clock, report)

    async def wrote(obj: Obj, outcome: Outcome) -> None:
        if outcome != "unchanged":
            report(f"{shown(obj)} {outcome}")

    await apply_all(control, release_objects(release, authority, addons), wrote)
    for api in (CLUSTERS_API, *(api for name in addons for api in ADDONS[name].apis)):
        await until_available(control, api, seconds, clock, report)


async def delete_secrets(client: Client, namespace: str, names: Sequence[str]) -> list[str]:
    """Delete the Secrets that were there."""
    return [name for name in names if await delete_if_exists(client, SECRETS, name, namespace)]
