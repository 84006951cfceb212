"""Services and pods for tests of what stands behind Services."""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.gvrs import PODS, SLICES
from karmada.kube.objects.types import Obj
from tests.kube.sim.harness import Harness

COALESCED = 0.041


def service(name: str = "web", **spec: Any) -> Obj:
    metadata = {"name": name, "namespace": "default", "labels": {"team": "a"}}
    wanted = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": wanted}


def pod(name: str, *, app: str = "web", **spec: Any) -> Obj:
    container = {"name": "c", "image": "nginx", "ports": [{"name": "http", "containerPort": 8080}]}
    metadata = {"name": name, "namespace": "default", "labels": {"app": app}}
    wanted = {"nodeName": "n1", "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": wanted}


async def running_pod(cluster: Harness, name: str, ip: str, *, ready: bool = True, **spec: Any) -> Obj:
    made = await cluster.client.create(PODS, pod(name, **spec))
    made = await cluster.set_pod_status(made, {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]})
    return await cluster.make_ready(made) if ready else made


async def slices(cluster: Harness, name: str = "web") -> list[Obj]:
    selector = f"kubernetes.io/service-name={name}"
    found = (await cluster.client.list_all(SLICES, "default", label_selector=selector)).items
    return sorted(found, key=lambda obj: str(obj["metadata"]["name"]))
