"""The objects of addons in the host cluster; of each the last one is the Deployment.

They have no label of the installation: `deinit` leaves addons alone unless `--addons` is given.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

from karmada.install.addons.settings import Settings
from karmada.install.common_flags import DELEGATED, LISTENING, SERVING, estimator_flags
from karmada.install.components import healthy
from karmada.install.names import CONFIG_FILE, PKI_FOLDER, PROGRAMS, SERVING_PORT
from karmada.install.pods import (
    CERTIFICATE_MOUNT,
    CONFIG_MOUNT,
    SCRATCH_MOUNT,
    certificate_volume,
    config_volume,
    container,
    deployment,
    http_probe,
    labels_of,
    pod_template,
    scratch_volume,
    secret_volume,
    service_account,
)
from karmada.install.services import cluster_service
from karmada.kube.objects.types import Obj

DESCHEDULER, ESTIMATOR = "karmada-descheduler", "karmada-scheduler-estimator"
METRICS_ADAPTER, SEARCH, DASHBOARD = "karmada-metrics-adapter", "karmada-search", "karmada-dashboard"
ESTIMATOR_PORT = 10352
_METRICS = ("metrics", 8080)


def estimator_name(cluster: str) -> str:
    return f"{ESTIMATOR}-{cluster}"


def member_secret(cluster: str) -> str:
    return f"{cluster}-kubeconfig"


def descheduler(settings: Settings) -> list[Obj]:
    flags = [
        f"--kubeconfig={CONFIG_FILE}",
        "--metrics-bind-address=$(POD_IP):8080",
        "--health-probe-bind-address=$(POD_IP):10358",
        f"--leader-elect-resource-namespace={settings.namespace}",
        *estimator_flags(settings.namespace),
        "--v=2",
    ]
    return _workload(DESCHEDULER, DESCHEDULER, settings, flags, healthy(http_port=10358), [_METRICS])


def estimator(settings: Settings) -> list[Obj]:
    cluster = settings.cluster
    name, secret = estimator_name(cluster), member_secret(cluster)
    file = f"/etc/{secret}"
    flags = [
        f"--kubeconfig={file}",
        f"--cluster-name={cluster}",
        f"--grpc-auth-cert-file={PKI_FOLDER}/karmada.crt",
        f"--grpc-auth-key-file={PKI_FOLDER}/karmada.key",
        f"--grpc-client-ca-file={PKI_FOLDER}/ca.crt",
        "--metrics-bind-address=$(POD_IP):8080",
        "--health-probe-bind-address=$(POD_IP):10351",
    ]
    served = {"tcpSocket": {"port": ESTIMATOR_PORT}, "periodSeconds": 3, "timeoutSeconds": 5, "failureThreshold": 3}
    probes = {**healthy(http_port=10351), "readinessProbe": served}
    mounts = [CERTIFICATE_MOUNT, {"name": "member-config", "mountPath": file, "subPath": secret, "readOnly": True}]
    volumes = [certificate_volume(), secret_volume("member-config", secret)]
    ports = [("server", ESTIMATOR_PORT), _METRICS]
    found = _workload(name, ESTIMATOR, settings, flags, probes, ports, (mounts, volumes), {"cluster": cluster})
    access = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret, "namespace": settings.namespace},
        "data": {secret: base64.b64encode(settings.member_kubeconfig).decode()},
    }
    return [access, _service(name, settings, "server", ESTIMATOR_PORT, ESTIMATOR_PORT), *found]


def metrics_adapter(settings: Settings) -> list[Obj]:
    flags = [
        *DELEGATED,
        f"--client-ca-file={PKI_FOLDER}/ca.crt",
        *SERVING,
        "--metrics-bind-address=$(POD_IP):8080",
        "--v=2",
    ]
    probes = {
        "readinessProbe": http_probe("/readyz", SERVING_PORT, 1, 3, 15),
        "livenessProbe": http_probe("/healthz", SERVING_PORT, 10, 10, 15),
    }
    found = _workload(METRICS_ADAPTER, METRICS_ADAPTER, settings, flags, probes, [("https", SERVING_PORT), _METRICS])
    return [_service(METRICS_ADAPTER, settings, "https", 443, SERVING_PORT), *found]


def search(settings: Settings) -> list[Obj]:
    flags = [*DELEGATED, *settings.store, *SERVING, "--v=2"]
    probes = {
        "readinessProbe": http_probe("/readyz", SERVING_PORT, 1, 3, 15),
        "livenessProbe": http_probe("/livez", SERVING_PORT, 15, 15, 5),
    }
    found = _workload(SEARCH, SEARCH, settings, flags, probes, [("https", SERVING_PORT)])
    return [_service(SEARCH, settings, "https", 443, SERVING_PORT), *found]


def dashboard(settings: Settings) -> list[Obj]:
    """Read-only; browsers reach it by port-forward as localhost, or inside the cluster by the names of its Service."""
    service = f"{DASHBOARD}.{settings.namespace}"
    flags = [
        f"--kubeconfig={CONFIG_FILE}",
        *LISTENING,
        *(f"--host={name}" for name in (service, f"{service}.svc", f"{service}.svc.{settings.domain}")),
        "--metrics-bind-address=$(POD_IP):8080",
        "--health-probe-bind-address=$(POD_IP):10359",
        "--v=2",
    ]
    probes = {
        **healthy(http_port=10359),
        "readinessProbe": http_probe("/readyz", 10359, 1, 3, 15, tls=False),
    }
    found = _workload(DASHBOARD, DASHBOARD, settings, flags, probes, [("https", SERVING_PORT), _METRICS])
    return [_service(DASHBOARD, settings, "https", 443, SERVING_PORT), *found]


def _workload(
    name: str,
    addon: str,
    settings: Settings,
    flags: Sequence[str],
    probes: Obj,
    ports: Sequence[tuple[str, int]],
    files: tuple[Sequence[Obj], Sequence[Obj]] | None = None,
    labels: Obj | None = None,
) -> list[Obj]:
    """Account and Deployment; `files` are mounts and volumes, those of a client of the control plane by default."""
    component, images = settings.of(addon), settings.images
    mounts, volumes = files or ([CONFIG_MOUNT, CERTIFICATE_MOUNT], [config_volume(addon), certificate_volume()])
    main = container(
        addon,
        images.component(addon, component.image),
        [f"{PROGRAMS}/{addon}", *flags],
        mounts=[*mounts, SCRATCH_MOUNT],
        ports=ports,
        probes=probes,
        pull_policy=images.pull_policy,
    )
    volumes = [*volumes, scratch_volume("scratch")]
    template = pod_template(name, main, volumes, component, images, more_labels=labels)
    made = deployment(name, settings.namespace, component.replicas, template)
    return [_labelled(service_account(name, settings.namespace), name), _labelled(made, name, labels)]


def _service(name: str, settings: Settings, port_name: str, port: int, target: int) -> Obj:
    return _labelled(cluster_service(name, settings.namespace, port_name, port, target), name)


def _labelled(obj: Obj, app: str, more: Obj | None = None) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "labels": {**labels_of(app), **(more or {})}}}
