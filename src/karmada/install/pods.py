"""What all pods of an installation have in common: the restricted security profile, files, probes, and spreading.

Nothing runs as root, nothing can gain a privilege, and root file systems are read-only. The one exception is a store in
a folder of its node (hostPath), which only root may write to, and which the restricted profile forbids by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from karmada.install.images import ImageSource
from karmada.install.names import (
    APPLICATION,
    CERTIFICATES,
    CONFIG_FOLDER,
    PKI_FOLDER,
    STATE_FOLDER,
    config_secret,
)
from karmada.install.options import Component
from karmada.kube.objects.types import Obj

USER_ID: Final = 65532
"""User of the processes and owner group of their files."""
_READABLE: Final = 0o440
_PKI_FILE: Final = re.compile(rf"{re.escape(PKI_FOLDER)}/([\w.-]+)")
_TOLERATIONS: Final = [{"effect": "NoExecute", "operator": "Exists"}]


def restricted(*, root: bool = False) -> Obj:
    """Return the security context of a pod."""
    if root:
        return {"runAsUser": 0, "runAsGroup": 0, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "runAsNonRoot": True,
        "runAsUser": USER_ID,
        "runAsGroup": USER_ID,
        "fsGroup": USER_ID,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _confined() -> Obj:
    """Return the security context of a container."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def container(
    name: str,
    image: str,
    command: Sequence[str],
    *,
    mounts: Sequence[Obj],
    ports: Sequence[tuple[str, int]] = (),
    probes: Obj | None = None,
    pull_policy: str = "IfNotPresent",
    env: Sequence[Obj] = (),
) -> Obj:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": pull_policy,
        "command": list(command),
        "env": [_from_field("POD_IP", "status.podIP"), *env],
        "ports": [{"name": port, "containerPort": number, "protocol": "TCP"} for port, number in ports],
        "volumeMounts": list(mounts),
        "securityContext": _confined(),
        "resources": {"requests": {"cpu": "100m"}},
        **(probes or {}),
    }


def pod_name() -> Obj:
    """Return the name of the pod as an environment variable."""
    return _from_field("POD_NAME", "metadata.name")


def _from_field(name: str, path: str) -> Obj:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def home() -> Obj:
    """For programs that keep files below their home."""
    return {"name": "HOME", "value": STATE_FOLDER}


def http_probe(path: str, port: int, delay: int, period: int, timeout: int, *, tls: bool = True, fails: int = 3) -> Obj:
    return {
        "httpGet": {"path": path, "port": port, "scheme": "HTTPS" if tls else "HTTP"},
        "initialDelaySeconds": delay,
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": fails,
    }


# volumes


def mount(name: str, folder: str, *, read_only: bool = True) -> Obj:
    found: Obj = {"name": name, "mountPath": folder}
    return {**found, "readOnly": True} if read_only else found


class Files(NamedTuple):
    """A folder in a pod, and what is in it."""

    mount: Obj
    volume: Obj


def secret_volume(name: str, secret: str) -> Obj:
    return {"name": name, "secret": {"secretName": secret, "defaultMode": _READABLE}}


def secret_files(secret: str, folder: str, *, name: str = "") -> Files:
    """Return a Secret as files in this folder; `name` is that of the volume, if it is another."""
    return Files(mount(name or secret, folder), secret_volume(name or secret, secret))


def config_files(component: str) -> Files:
    return secret_files(config_secret(component), CONFIG_FOLDER, name=CONFIG_VOLUME)


CONFIG_VOLUME: Final = "karmada-config"
CERTIFICATE_FILES: Final = secret_files(CERTIFICATES, PKI_FOLDER)
SCRATCH_FILES: Final = Files(mount("scratch", "/tmp", read_only=False), {"name": "scratch", "emptyDir": {}})
QUARANTINE_FLAG: Final = "--quarantine-file=/tmp/quarantine.json"
"""In the volume above, which outlives the restart of a container that hung."""


# workloads


def labels_of(app: str) -> Obj:
    return {"app": app}


def service_account(app: str, namespace: str) -> Obj:
    """Without rights, and without a token in the pods: components talk to the control plane, not to the host."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": app, "namespace": namespace, "labels": APPLICATION},
        "automountServiceAccountToken": False,
    }


def pod_template(
    app: str,
    main: Obj,
    volumes: Sequence[Obj],
    component: Component,
    images: ImageSource,
    *,
    more_labels: Obj | None = None,
    root: bool = False,
) -> Obj:
    spec: Obj = {
        "serviceAccountName": app,
        "automountServiceAccountToken": False,
        "priorityClassName": component.priority_class,
        "securityContext": restricted(root=root),
        "containers": [main],
        "volumes": [_only_named_files(volume, main) for volume in volumes],
        "tolerations": _TOLERATIONS,
        "affinity": {"podAntiAffinity": _apart(app)},
    }
    if images.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in images.pull_secrets]
    return {"metadata": {"labels": {**labels_of(app), **(more_labels or {})}}, "spec": spec}


def _only_named_files(volume: Obj, main: Obj) -> Obj:
    """Mount from Secrets with certificates only the files that a command line names: no authority's key besides."""
    mounted = any(each["name"] == volume["name"] and each["mountPath"] == PKI_FOLDER for each in main["volumeMounts"])
    if not mounted or "secret" not in volume:
        return volume
    files = sorted({file for word in main["command"] for file in _PKI_FILE.findall(word)})
    return {**volume, "secret": {**volume["secret"], "items": [{"key": file, "path": file} for file in files]}}


def _apart(app: str) -> Obj:
    """Replicas are never on the same node."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels_of(app)}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def preferably_apart(app: str) -> Obj:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels_of(app)}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def deployment(app: str, namespace: str, replicas: int, template: Obj, *, recreate: bool = False) -> Obj:
    """Return the strategy that replaces pods one after the other.

    A new one beside the old ones would find no node when replicas must be on different nodes; and with `recreate` the
    old one has to release its volume first.
    """
    strategy: Obj = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app, "namespace": namespace, "labels": {**APPLICATION, **template["metadata"]["labels"]}},
        "spec": {
            "replicas": replicas,
            "strategy": {"type": "Recreate"} if recreate else strategy,
            "selector": {"matchLabels": labels_of(app)},
            "template": template,
        },
    }
