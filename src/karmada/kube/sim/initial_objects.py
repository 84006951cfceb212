"""The objects of a new simulated cluster: storage classes and, if wanted, its DNS.

The DNS requests nothing, so that the nodes of a new cluster are as large for pods as their pool says.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from karmada.kube.objects.types import Obj
from karmada.kube.sim.profile import Profile, StorageClass

_DNS_LABELS = {"k8s-app": "kube-dns"}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def initial_objects(profile: Profile) -> Iterator[Obj]:
    yield from map(_storage_class, profile.storage_classes)
    if profile.system_pods:
        yield from _dns(str(ipaddress.ip_network(profile.service_cidr)[10]))


def _storage_class(wanted: StorageClass) -> Obj:
    metadata: Obj = {"name": wanted.name}
    if wanted.default:
        metadata["annotations"] = {_DEFAULT_CLASS: "true"}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": metadata,
        "provisioner": wanted.provisioner,
        "reclaimPolicy": wanted.reclaim,
        "volumeBindingMode": wanted.binding,
        "allowVolumeExpansion": wanted.expandable,
    }


def _dns(address: str) -> Iterator[Obj]:
    ports = [("dns", 53, "UDP"), ("dns-tcp", 53, "TCP"), ("metrics", 9153, "TCP")]
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kube-dns",
            "namespace": "kube-system",
            "labels": {**_DNS_LABELS, "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"},
        },
        "spec": {
            "clusterIP": address,
            "selector": _DNS_LABELS,
            "ports": [{"name": name, "port": port, "protocol": protocol} for name, port, protocol in ports],
        },
    }
    container = {
        "name": "coredns",
        "image": "registry.k8s.io/coredns/coredns:v1.12.4",
        "ports": [{"name": name, "containerPort": port, "protocol": protocol} for name, port, protocol in ports],
    }
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "coredns", "namespace": "kube-system", "labels": _DNS_LABELS},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": _DNS_LABELS},
            "template": {
                "metadata": {"labels": _DNS_LABELS},
                "spec": {
                    "priorityClassName": "system-cluster-critical",
                    "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
                    "containers": [container],
                },
            },
        },
    }
