"""Services and the pods behind them: finding each from the other, and what a Service makes of a pod.

Pods are found through an index of their labels, Services through one pair of their selector, so that neither a pod's
change nor a Service's looks at everything in the namespace. Ports named in `targetPort` are looked up in each pod.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from functools import lru_cache

from karmada.kube.objects.gvrs import PODS, SERVICES
from karmada.kube.objects.meta import creation_time, is_deleting
from karmada.kube.objects.podstate import is_terminal
from karmada.kube.objects.selectors import labels_from_map
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.label_index import BY_LABEL, index_by_label

HEADLESS = "service.kubernetes.io/headless"
TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
ZONE = "topology.kubernetes.io/zone"
_BY_SELECTOR = "selector pair"


def index_by_selector_pair(service: Obj) -> Iterable[str]:
    """Index a Service by one pair of its selector: a pod that it selects has them all."""
    selector = selector_of(service)
    if not selector:
        return ()
    key, value = min(selector.items())
    return (f"{service['metadata']['namespace']}/{key}={value}",)


def selector_of(service: Obj) -> dict[str, str]:
    spec = service.get("spec") or {}
    found: dict[str, str] = {} if spec.get("type") == "ExternalName" else spec.get("selector") or {}
    return found


class ServicePods:
    """Both directions over the shared informers."""

    def __init__(self, informers: Informers) -> None:
        self.services: Informer = informers.of(SERVICES, indexes={_BY_SELECTOR: index_by_selector_pair})
        self.pods: Informer = informers.of(PODS, indexes={BY_LABEL: index_by_label})

    def services_of(self, pod: Obj) -> Iterator[Key]:
        labels = pod["metadata"].get("labels") or {}
        for pair in index_by_label(pod):
            for service in self.services.by_index(_BY_SELECTOR, pair):
                if selector_of(service).items() <= labels.items():
                    yield key_of(service)

    def pods_of(self, service: Obj) -> list[Obj]:
        """Return the pods that can be reached through the Service or soon will be, oldest first."""
        namespace, selector = service["metadata"]["namespace"], selector_of(service)
        if not selector:
            return []
        pairs = (self.pods.by_index(BY_LABEL, f"{namespace}/{key}={value}") for key, value in selector.items())
        fewest = min(pairs, key=len)
        matches = labels_from_map(selector).matches
        found = [pod for pod in fewest if matches(pod["metadata"].get("labels")) and is_reachable(pod)]
        return sorted(found, key=lambda pod: (creation_time(pod), pod["metadata"]["name"]))


def matters_to_services(old: Obj | None, new: Obj | None) -> bool:
    """Return whether a pod's change can change an endpoint."""
    if not any(pod is not None and is_reachable(pod) for pod in (old, new)):
        return False
    return old is None or new is None or _seen_by_services(old) != _seen_by_services(new)


def _seen_by_services(pod: Obj) -> tuple[object, ...]:
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    ready = [c.get("status") for c in status.get("conditions") or () if c.get("type") == "Ready"]
    return (
        pod["metadata"].get("labels"), is_deleting(pod), status.get("phase"), status.get("podIPs"),
        status.get("podIP"), ready, spec.get("nodeName"), spec.get("hostname"), spec.get("subdomain"),
    )  # fmt: skip


def matters_to_endpoints(old: Obj | None, new: Obj | None) -> bool:
    """Return whether a Service's change can change its endpoints."""
    if old is None or new is None:
        return True
    return old.get("spec") != new.get("spec") or old["metadata"].get("labels") != new["metadata"].get("labels")


# --- what a pod looks like from a Service


def is_reachable(pod: Obj) -> bool:
    return not is_terminal(pod) and bool(addresses(pod))


def addresses(pod: Obj) -> list[str]:
    status = pod.get("status") or {}
    found = [entry["ip"] for entry in status.get("podIPs") or () if entry.get("ip")]
    return found or ([status["podIP"]] if status.get("podIP") else [])


@lru_cache(maxsize=16384)
def family(address: str) -> str:
    return f"IPv{ipaddress.ip_address(address).version}"


def address_in(pod: Obj, wanted: str) -> str | None:
    """Return the pod's address of a family."""
    return next((address for address in addresses(pod) if family(address) == wanted), None)


def families(service: Obj) -> list[str]:
    spec = service.get("spec") or {}
    if spec.get("ipFamilies"):
        return list(spec["ipFamilies"])
    own = spec.get("clusterIP")
    return [family(own)] if own and own != "None" else ["IPv4"]


def port_in(pod: Obj, service_port: Obj) -> int | None:
    """Return the number of the port that a Service's port leads to; None when the pod has none of that name."""
    target = service_port.get("targetPort") or service_port["port"]
    if isinstance(target, int):
        return target
    protocol = service_port.get("protocol") or "TCP"
    for container in _containers(pod):
        for port in container.get("ports") or ():
            if port.get("name") == target and (port.get("protocol") or "TCP") == protocol:
                return int(port["containerPort"])
    return None


def _containers(pod: Obj) -> Iterator[Obj]:
    spec = pod.get("spec") or {}
    yield from spec.get("containers") or ()
    yield from (c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always")


def ports_in(pod: Obj, service: Obj) -> list[Obj]:
    """Return the Service's ports as this pod has them."""
    found = []
    for port in (service.get("spec") or {}).get("ports") or ():
        number = port_in(pod, port)
        if number is None:
            continue
        entry: Obj = {"name": port.get("name") or "", "port": number, "protocol": port.get("protocol") or "TCP"}
        if port.get("appProtocol"):
            entry["appProtocol"] = port["appProtocol"]
        found.append(entry)
    return found


def hostname_in(pod: Obj, service: Obj) -> str:
    """Return the name a pod has inside a Service's domain."""
    spec = pod.get("spec") or {}
    return str(spec.get("hostname") or "") if spec.get("subdomain") == service["metadata"]["name"] else ""


def reference_to(pod: Obj) -> Obj:
    metadata = pod["metadata"]
    return {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}


def is_headless(service: Obj) -> bool:
    return (service.get("spec") or {}).get("clusterIP") == "None"


def publishes_unready(service: Obj) -> bool:
    return bool((service.get("spec") or {}).get("publishNotReadyAddresses"))


def trigger_time(service: Obj, pods: Iterable[Obj]) -> str:
    """Return the latest moment at which something happened that the endpoints show."""
    moments = [creation_time(service)]
    for pod in pods:
        moments += [
            condition.get("lastTransitionTime") or ""
            for condition in (pod.get("status") or {}).get("conditions") or ()
            if condition.get("type") == "Ready"
        ]
    return max(moments)
