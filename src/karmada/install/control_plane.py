"""The objects that a control plane needs besides its programs, for the separate layout.

`karmada` creates them by itself on every start. A kube-apiserver, ours or Kubernetes' own, knows nothing of Karmada: it
gets the definitions of the kinds, the webhooks, the way to the aggregated API server, roles, and what clusters need to
register.
"""

from __future__ import annotations

import base64
from typing import Final

from karmada.admission.registration import webhook_configurations
from karmada.api.crds import Webhook, crd_manifests
from karmada.apiserver.mount import proxy_rights, system_namespaces
from karmada.apiserver.registration import cluster_info, registration_rights
from karmada.apiserver.tenant_roles import tenant_roles
from karmada.install.host import namespace
from karmada.install.names import AGGREGATED, WEBHOOK, service_host
from karmada.install.options import Options
from karmada.kube.objects.types import Obj

CLUSTERS_API: Final = "v1alpha1.cluster.karmada.io"


def control_plane_objects(
    options: Options, server: str, authority: bytes, *, webhook_service: str = WEBHOOK, aggregated: str = AGGREGATED
) -> list[Obj]:
    """In the order in which they are applied; `server` is the address for clients, `authority` that of all servers."""
    webhook = f"https://{webhook_service}.{options.namespace}.svc:443"
    names = {obj["metadata"]["name"]: obj for obj in (namespace(options.namespace), *system_namespaces())}
    return [
        *names.values(),
        *crd_manifests(webhook=Webhook(f"{webhook}/convert", authority)),
        *webhook_configurations(webhook, authority),
        external_name(aggregated, options.namespace, options.domain),
        api_service(CLUSTERS_API, aggregated, options.namespace, authority, 2000, 10),
        *proxy_rights(),
        *tenant_roles(),
        *registration_rights(),
        cluster_info(server, authority),
    ]


def external_name(service: str, in_namespace: str, domain: str) -> Obj:
    """Return a Service of the control plane that stands for one of the host cluster."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service, "namespace": in_namespace},
        "spec": {"type": "ExternalName", "externalName": service_host(service, in_namespace, domain)},
    }


def api_service(name: str, service: str, in_namespace: str, authority: bytes, group: int, version: int) -> Obj:
    """Return an APIService of this name; `group` and `version` are its priorities."""
    of_version, _, of_group = name.partition(".")
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name, "labels": {"app": service, "apiserver": "true"}},
        "spec": {
            "group": of_group,
            "version": of_version,
            "groupPriorityMinimum": group,
            "versionPriority": version,
            "caBundle": base64.b64encode(authority).decode(),
            "service": {"name": service, "namespace": in_namespace, "port": 443},
        },
    }
