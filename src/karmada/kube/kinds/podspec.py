"""Defaults of a PodSpec, in place, shared by Pods and every kind with a pod template.

Runs at least twice on every write, so it is flat code over plain dicts: one pass over containers and volumes, no
schema walk. Empty strings count as absent, as on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from karmada.kube.kinds.checks import canonical_quantity, canonical_resources
from karmada.kube.kinds.filling import fill
from karmada.kube.kinds.images import default_pull_policy
from karmada.kube.kinds.pod_amounts import pod_resources
from karmada.kube.objects.types import Obj

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_SPEC_DEFAULTS = (
    ("restartPolicy", "Always"),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", "default-scheduler"),
)
_PROBE_DEFAULTS = (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3))


def containers_of(spec: Obj) -> Iterator[Obj]:
    """Init containers, containers and ephemeral containers, in this order."""
    for key in _CONTAINER_LISTS:
        yield from spec.get(key) or ()


def default_template(template: Obj) -> None:
    """Fill in the defaults of a PodTemplateSpec."""
    default_pod_spec(template.setdefault("spec", {}))


_POD_LEVEL = ("cpu", "memory")


def default_pod_resources(spec: Obj) -> None:
    """Fill in requests of the pod as a whole: what its containers request together, else the pod's limits."""
    resources = spec.get("resources")
    if not resources or not (resources.get("limits") or resources.get("requests")):
        return
    requests = dict(resources.get("requests") or {})
    for name, amount in pod_resources({**spec, "overhead": None}, "requests").items():
        if name in _POD_LEVEL:
            requests.setdefault(name, str(amount))
    for name, amount in (resources.get("limits") or {}).items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            requests.setdefault(name, amount)
    if requests:
        resources["requests"] = requests


def default_pod_spec(spec: Obj) -> None:
    for key, value in _SPEC_DEFAULTS:
        if not spec.get(key):
            spec[key] = value
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for key in _CONTAINER_LISTS:
        for container in spec.get(key) or ():
            default_container(container)
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    if spec.get("overhead"):
        canonical_resources(spec["overhead"])
    if spec.get("resources"):
        _default_resources(spec["resources"])


def default_container(container: Obj) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = default_pull_policy(container.get("image") or "")
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    resources = container.get("resources")
    if resources is None:
        container["resources"] = {}
    elif resources:
        _default_resources(resources)
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if source:
            _default_references(source)
    for key in _PROBES:
        if key in container:
            _default_probe(container[key])
    if container.get("lifecycle"):
        _default_lifecycle(container["lifecycle"])


def _default_lifecycle(lifecycle: Obj) -> None:
    for handler in ("postStart", "preStop"):
        action = lifecycle.get(handler)
        if action and action.get("httpGet") is not None:
            _default_http(action["httpGet"])


def _default_resources(resources: Obj) -> None:
    canonical_resources(resources.get("limits"))
    canonical_resources(resources.get("requests"))


def _default_references(source: Obj) -> None:
    field = source.get("fieldRef")
    if field is not None and not field.get("apiVersion"):
        field["apiVersion"] = "v1"
    resource = source.get("resourceFieldRef")
    if resource is not None and not resource.get("divisor"):
        resource["divisor"] = "0"
    file = source.get("fileKeyRef")
    if file is not None and file.get("optional") is None:
        file["optional"] = False


def _default_probe(probe: Obj) -> None:
    for key, value in _PROBE_DEFAULTS:
        if not probe.get(key):
            probe[key] = value
    if probe.get("httpGet") is not None:
        _default_http(probe["httpGet"])
    grpc = probe.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_http(action: Obj) -> None:
    if not action.get("path"):
        action["path"] = "/"
    if not action.get("scheme"):
        action["scheme"] = "HTTP"


# --- volumes


def _mode(source: Obj) -> None:
    if source.get("defaultMode") is None:
        source["defaultMode"] = 420
    for item in source.get("items") or ():
        _default_references(item)


def _projected(source: Obj) -> None:
    if source.get("defaultMode") is None:
        source["defaultMode"] = 420
    for part in source.get("sources") or ():
        token = part.get("serviceAccountToken")
        if token is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = 3600
        for item in (part.get("downwardAPI") or {}).get("items") or ():
            field = item.get("fieldRef")
            if field is not None and not field.get("apiVersion"):
                field["apiVersion"] = "v1"


def _host_path(source: Obj) -> None:
    if source.get("type") is None:
        source["type"] = ""


def _ephemeral(source: Obj) -> None:
    claim = (source.get("volumeClaimTemplate") or {}).get("spec")
    if claim is not None:
        if not claim.get("volumeMode"):
            claim["volumeMode"] = "Filesystem"
        if claim.get("resources"):
            _default_resources(claim["resources"])


def _empty_dir(source: Obj) -> None:
    if source.get("sizeLimit") is not None:
        source["sizeLimit"] = canonical_quantity(source["sizeLimit"])


def _image(source: Obj) -> None:
    if not source.get("pullPolicy"):
        source["pullPolicy"] = default_pull_policy(source.get("reference") or "")


_VOLUME_SOURCES: dict[str, Callable[[Obj], None]] = {
    "secret": _mode,
    "configMap": _mode,
    "downwardAPI": _mode,
    "projected": _projected,
    "hostPath": _host_path,
    "emptyDir": _empty_dir,
    "ephemeral": _ephemeral,
    "image": _image,
    "iscsi": partial(fill, iscsiInterface="default"),
    "rbd": partial(fill, pool="rbd", user="admin", keyring="/etc/ceph/keyring"),
    "azureDisk": partial(fill, cachingMode="ReadWrite", kind="Shared", fsType="ext4", readOnly=False),
    "scaleIO": partial(fill, storageMode="ThinProvisioned", fsType="xfs"),
}


def default_volume_source(source: Obj) -> None:
    """Fill in the part that Pods' volumes and PersistentVolumes have in common."""
    for key, value in source.items():
        default = _VOLUME_SOURCES.get(key)
        if default is not None and isinstance(value, dict):
            default(value)


def default_volume(volume: Obj) -> None:
    default_volume_source(volume)
    if not any(key != "name" for key in volume):
        volume["emptyDir"] = {}


# --- what holds for Pods but not for templates


def default_pod_only(spec: Obj) -> None:
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    host_network = spec.get("hostNetwork")
    for container in containers_of(spec):
        resources = container.get("resources")
        if resources and resources.get("limits"):
            requests = resources.get("requests")
            if requests is None:
                requests = resources["requests"] = {}
            for name, amount in resources["limits"].items():
                requests.setdefault(name, amount)
        if host_network:
            for port in container.get("ports") or ():
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort")
    if spec.get("resources"):
        default_pod_resources(spec)
