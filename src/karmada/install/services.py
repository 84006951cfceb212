"""The Services of an installation."""

from __future__ import annotations

from karmada.install.names import (
    AGGREGATED,
    API_PORT,
    API_SERVER,
    ETCD,
    KUBE_CONTROLLER_MANAGER,
    SERVICE,
    SERVING_PORT,
    WEBHOOK,
)
from karmada.install.options import Options
from karmada.kube.objects.types import Obj


def service(name: str, namespace: str, ports: list[Obj], **spec: object) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": SERVICE},
        "spec": {"selector": {"app": name}, "ports": [{"protocol": "TCP", **port} for port in ports], **spec},
    }


def cluster_service(name: str, namespace: str, port_name: str, port: int, target: int) -> Obj:
    """For clients in the host cluster."""
    return service(name, namespace, [{"name": port_name, "port": port, "targetPort": target}], type="ClusterIP")


def api_server_service(options: Options) -> Obj:
    """Clients outside of the host cluster come in by the port of its nodes."""
    port = {"name": "server", "port": API_PORT, "targetPort": API_PORT, "nodePort": options.port}
    return service(API_SERVER, options.namespace, [port], type="NodePort")


def aggregated_service(options: Options) -> Obj:
    return cluster_service(AGGREGATED, options.namespace, "https", 443, SERVING_PORT)


def webhook_service(options: Options) -> Obj:
    return cluster_service(WEBHOOK, options.namespace, "webhook", 443, SERVING_PORT)


def controller_manager_service(options: Options) -> Obj:
    return cluster_service(KUBE_CONTROLLER_MANAGER, options.namespace, "server", 10257, 10257)


def etcd_service(options: Options) -> Obj:
    """Members find each other by their names, also before they are ready."""
    ports = [{"name": "client", "port": 2379, "targetPort": 2379}, {"name": "server", "port": 2380, "targetPort": 2380}]
    return service(ETCD, options.namespace, ports, clusterIP="None", publishNotReadyAddresses=True)
