"""The objects of addons in the host cluster; of each the last one is the Deployment.

They have no label of the installation: `deinit` leaves addons alone unless `--addons` is given.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from karmada.install.addons.settings import Settings
from karmada.install.common_flags import DELEGATED, SERVING, estimator_flags
from karmada.install.components import healthy, serving_probes
from karmada.install.names import (
    CONFIG_FILE,
    CONFIG_FOLDER,
    CONFIG_KEY,
    PKI_FOLDER,
    PROGRAMS,
    SERVING_PORT,
    api_server_url,
    service_host,
)
from karmada.install.pods import (
    CERTIFICATE_FILES,
    CONFIG_VOLUME,
    QUARANTINE_FLAG,
    SCRATCH_FILES,
    Files,
    config_files,
    container,
    deployment,
    http_probe,
    labels_of,
    mount,
    pod_template,
    secret_files,
    secret_volume,
    service_account,
)
from karmada.install.services import cluster_service
from karmada.kube.objects.types import Obj

DESCHEDULER, ESTIMATOR = "karmada-descheduler", "karmada-scheduler-estimator"
METRICS_ADAPTER, SEARCH, DASHBOARD = "karmada-metrics-adapter", "karmada-search", "karmada-dashboard"
ESTIMATOR_PORT, DASHBOARD_PORT, _DASHBOARD_HEALTH = 10352, 5480, 10359
_SERVING_FOLDER = "/etc/karmada/serving"
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
        QUARANTINE_FLAG,
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
    member = {"name": "member-config", "mountPath": file, "subPath": secret, "readOnly": True}
    files = [CERTIFICATE_FILES, Files(member, secret_volume("member-config", secret))]
    ports = [("server", ESTIMATOR_PORT), _METRICS]
    found = _workload(name, ESTIMATOR, settings, flags, probes, ports, files, {"cluster": cluster})
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
    ports = [("https", SERVING_PORT), _METRICS]
    found = _workload(METRICS_ADAPTER, METRICS_ADAPTER, settings, flags, serving_probes(), ports)
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
    """Return the dashboard, whose pods hold no credentials: viewers bring their own.

    Neither a kubeconfig with a user nor a key of the control plane. It listens on all addresses, since a forwarded port
    arrives at the pod's loopback.
    """
    way_in = {"name": CONFIG_VOLUME, "configMap": {"name": DASHBOARD}}
    files = [Files(mount(CONFIG_VOLUME, CONFIG_FOLDER), way_in)]
    serving = ["--cert-dir=/tmp/certificates"]
    if settings.serving_secret:
        files.append(secret_files(settings.serving_secret, _SERVING_FOLDER, name="serving-cert"))
        serving = [f"--tls-cert-file={_SERVING_FOLDER}/tls.crt", f"--tls-private-key-file={_SERVING_FOLDER}/tls.key"]
    flags = [
        f"--kubeconfig={CONFIG_FILE}",
        "--bind-address=0.0.0.0",
        f"--secure-port={DASHBOARD_PORT}",
        *serving,
        *(f"--host={name}" for name in (*_service_names(DASHBOARD, settings), *settings.hosts)),
        "--metrics-bind-address=$(POD_IP):8080",
        f"--health-probe-bind-address=$(POD_IP):{_DASHBOARD_HEALTH}",
    ]
    probes = {
        "livenessProbe": http_probe("/healthz", _DASHBOARD_HEALTH, 15, 15, 5, tls=False),
        "readinessProbe": http_probe("/readyz", _DASHBOARD_HEALTH, 0, 3, 5, tls=False),
    }
    ports = [("https", DASHBOARD_PORT), _METRICS]
    found = _workload(DASHBOARD, DASHBOARD, settings, flags, probes, ports, files)
    way = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": DASHBOARD, "namespace": settings.namespace},
        "data": {CONFIG_KEY: _anonymous_kubeconfig(settings)},
    }
    service = _service(DASHBOARD, settings, "https", 443, DASHBOARD_PORT)
    service["spec"]["sessionAffinity"] = "ClientIP"  # sessions are in the memory of one pod
    return [_labelled(way, DASHBOARD), service, *found]


def _service_names(service: str, settings: Settings) -> list[str]:
    """Return the names by which clients in the host cluster reach a Service."""
    short = f"{service}.{settings.namespace}"
    return [service, short, f"{short}.svc", service_host(service, settings.namespace, settings.domain)]


def _anonymous_kubeconfig(settings: Settings) -> str:
    """Return the address and the authority of the control plane, and nobody's credentials."""
    cluster = {
        "server": api_server_url(settings.namespace, settings.domain),
        "certificate-authority-data": base64.b64encode(settings.authority).decode(),
    }
    name = "karmada-apiserver"
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "contexts": [{"name": name, "context": {"cluster": name}}],
            "current-context": name,
        }
    )


def _workload(
    name: str,
    addon: str,
    settings: Settings,
    flags: Sequence[str],
    probes: Obj,
    ports: Sequence[tuple[str, int]],
    files: Sequence[Files] = (),
    labels: Obj | None = None,
) -> list[Obj]:
    """Account and Deployment; `files` are those of a client of the control plane by default."""
    component, images = settings.of(addon), settings.images
    files = [*(files or (config_files(addon), CERTIFICATE_FILES)), SCRATCH_FILES]
    main = container(
        addon,
        images.component(addon, component.image),
        [f"{PROGRAMS}/{addon}", *flags],
        mounts=[each.mount for each in files],
        ports=ports,
        probes=probes,
        pull_policy=images.pull_policy,
    )
    template = pod_template(name, main, [each.volume for each in files], component, images, more_labels=labels)
    made = deployment(name, settings.namespace, component.replicas, template)
    return [_labelled(service_account(name, settings.namespace), name), _labelled(made, name, labels)]


def _service(name: str, settings: Settings, port_name: str, port: int, target: int) -> Obj:
    return _labelled(cluster_service(name, settings.namespace, port_name, port, target), name)


def _labelled(obj: Obj, app: str, more: Obj | None = None) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "labels": {**labels_of(app), **(more or {})}}}
