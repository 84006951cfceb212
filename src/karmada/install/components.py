"""The components of the separate layout: one Deployment each, with Karmada's command lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from karmada.install.common_flags import DELEGATED, SERVING, estimator_flags
from karmada.install.extra_args import command_line
from karmada.install.names import (
    AGGREGATED,
    API_PORT,
    API_SERVER,
    CONFIG_FILE,
    CONTROLLER_MANAGER,
    KUBE_CONTROLLER_MANAGER,
    PKI_FOLDER,
    PROGRAMS,
    SCHEDULER,
    SERVING_PORT,
    WEBHOOK,
    WEBHOOK_CERTIFICATE,
    WEBHOOK_FOLDER,
)
from karmada.install.options import Options
from karmada.install.pods import (
    CERTIFICATE_FILES,
    QUARANTINE_FLAG,
    SCRATCH_FILES,
    Files,
    config_files,
    container,
    deployment,
    home,
    http_probe,
    pod_template,
    secret_files,
)
from karmada.install.stores import node_selector, state_files, store_flags
from karmada.kube.objects.types import Obj

SERVICE_RANGE = "10.96.0.0/12"
_CONTROLLERS = (
    "namespace,garbagecollector,serviceaccount-token,ttl-after-finished,bootstrapsigner,tokencleaner,csrcleaner,"
    "csrsigning,clusterrole-aggregation"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The differences between the Deployments."""

    app: str
    flags: Sequence[str]
    """The usual command line; the program is the first word."""
    files: Sequence[Files]
    ports: Sequence[tuple[str, int]]
    probes: Obj
    flag_name: str = ""
    """The component's name in flags, where it is another."""
    labels: Obj | None = None
    stateful: bool = False
    """True if it keeps files, such as SQLite."""


def build(work: Workload, options: Options) -> Obj:
    """Return the Deployment."""
    name = work.flag_name or work.app
    component = options.of(name)
    on_node = work.stateful and options.store == "sqlite" and options.volume.mode == "hostPath"
    files = [*work.files, SCRATCH_FILES, *([state_files(work.app, options)] if work.stateful else [])]
    main = container(
        work.app,
        options.images.component(name, component.image),
        command_line(list(work.flags), component.extra_args),
        mounts=[each.mount for each in files],
        ports=work.ports,
        probes=work.probes,
        pull_policy=options.images.pull_policy,
        env=[home()] if work.stateful else [],
    )
    volumes = [each.volume for each in files]
    template = pod_template(work.app, main, volumes, component, options.images, more_labels=work.labels, root=on_node)
    if on_node:
        template["spec"]["nodeSelector"] = node_selector(options.volume)
    recreate = work.stateful and options.store == "sqlite"
    return deployment(work.app, options.namespace, component.replicas, template, recreate=recreate)


def _logged(*flags: str) -> list[str]:
    return [*flags, "--v=2"]


def healthy(http_port: int) -> Obj:
    """Return the probe of a program without an API: ready as soon as it responds, even if another replica leads."""
    return {
        "livenessProbe": http_probe("/healthz", http_port, 15, 15, 5, tls=False),
        "readinessProbe": http_probe("/healthz", http_port, 0, 3, 5, tls=False),
    }


def serving_probes() -> Obj:
    """Return the probes of an API behind the control plane's."""
    return {
        "readinessProbe": http_probe("/readyz", SERVING_PORT, 1, 3, 15),
        "livenessProbe": http_probe("/healthz", SERVING_PORT, 10, 10, 15),
    }


# the API server


def api_server(options: Options) -> Obj:
    return serving_api(api_server_flags(options), options)


def serving_api(flags: list[str], options: Options) -> Obj:
    """Return the program that serves the API, by itself or with everything else in it."""
    work = Workload(
        app=API_SERVER,
        flags=flags,
        files=[CERTIFICATE_FILES],
        ports=[("server", API_PORT)],
        probes=api_server_probes(),
        stateful=True,
    )
    return build(work, options)


def api_server_probes() -> Obj:
    return {
        "livenessProbe": http_probe("/livez", API_PORT, 15, 30, 5),
        "readinessProbe": http_probe("/readyz", API_PORT, 0, 3, 5),
    }


def api_server_flags(options: Options) -> list[str]:
    return _logged(
        "kube-apiserver",
        "--allow-privileged=true",
        "--authorization-mode=Node,RBAC",
        f"--client-ca-file={PKI_FOLDER}/ca.crt",
        "--enable-bootstrap-token-auth=true",
        *store_flags(options),
        "--bind-address=0.0.0.0",
        "--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount",
        "--runtime-config=",
        f"--apiserver-count={options.of(API_SERVER).replicas}",
        f"--secure-port={API_PORT}",
        *account_flags(options),
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--proxy-client-cert-file={PKI_FOLDER}/front-proxy-client.crt",
        f"--proxy-client-key-file={PKI_FOLDER}/front-proxy-client.key",
        "--requestheader-allowed-names=front-proxy-client",
        f"--requestheader-client-ca-file={PKI_FOLDER}/front-proxy-ca.crt",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--tls-cert-file={PKI_FOLDER}/apiserver.crt",
        f"--tls-private-key-file={PKI_FOLDER}/apiserver.key",
        "--tls-min-version=VersionTLS13",
    )


def account_flags(options: Options) -> list[str]:
    """Return what signs and verifies the tokens of ServiceAccounts."""
    return [
        f"--service-account-issuer=https://kubernetes.default.svc.{options.domain}",
        f"--service-account-key-file={PKI_FOLDER}/karmada.key",
        f"--service-account-signing-key-file={PKI_FOLDER}/karmada.key",
    ]


# what stands behind it


def aggregated(options: Options) -> Obj:
    flags = _logged(
        f"{PROGRAMS}/{AGGREGATED}",
        *DELEGATED,
        *store_flags(options),
        *SERVING,
    )
    work = Workload(
        app=AGGREGATED,
        flags=flags,
        files=[config_files(AGGREGATED), CERTIFICATE_FILES],
        ports=[("https", SERVING_PORT)],
        probes=serving_probes(),
        labels={"apiserver": "true"},
        stateful=True,
    )
    return build(work, options)


def kube_controller_manager(options: Options) -> Obj:
    flags = _logged(
        "kube-controller-manager",
        "--allocate-node-cidrs=true",
        *DELEGATED,
        "--bind-address=0.0.0.0",
        f"--client-ca-file={PKI_FOLDER}/ca.crt",
        "--cluster-cidr=10.244.0.0/16",
        f"--cluster-name={API_SERVER}",
        f"--cluster-signing-cert-file={PKI_FOLDER}/ca.crt",
        f"--cluster-signing-key-file={PKI_FOLDER}/ca.key",
        f"--controllers={_CONTROLLERS}",
        "--leader-elect=true",
        f"--leader-elect-resource-namespace={options.namespace}",
        "--node-cidr-mask-size=24",
        f"--root-ca-file={PKI_FOLDER}/ca.crt",
        f"--service-account-private-key-file={PKI_FOLDER}/karmada.key",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--use-service-account-credentials=true",
    )
    work = Workload(
        app=KUBE_CONTROLLER_MANAGER,
        flag_name=f"karmada-{KUBE_CONTROLLER_MANAGER}",
        flags=flags,
        files=[config_files(KUBE_CONTROLLER_MANAGER), CERTIFICATE_FILES],
        ports=[("server", 10257)],
        probes={
            "livenessProbe": http_probe("/healthz", 10257, 10, 10, 15, fails=8),
            "readinessProbe": http_probe("/healthz", 10257, 0, 3, 15),
        },
    )
    return build(work, options)


def scheduler(options: Options) -> Obj:
    flags = _logged(
        f"{PROGRAMS}/{SCHEDULER}",
        f"--kubeconfig={CONFIG_FILE}",
        "--metrics-bind-address=$(POD_IP):8080",
        "--health-probe-bind-address=$(POD_IP):10351",
        QUARANTINE_FLAG,
        "--enable-scheduler-estimator=true",
        "--leader-elect=true",
        *estimator_flags(options.namespace),
        f"--leader-elect-resource-namespace={options.namespace}",
    )
    work = Workload(
        app=SCHEDULER,
        flags=flags,
        files=[config_files(SCHEDULER), CERTIFICATE_FILES],
        ports=[("metrics", 8080)],
        probes=healthy(http_port=10351),
    )
    return build(work, options)


def controller_manager(options: Options) -> Obj:
    flags = _logged(
        f"{PROGRAMS}/{CONTROLLER_MANAGER}",
        f"--kubeconfig={CONFIG_FILE}",
        "--metrics-bind-address=$(POD_IP):8080",
        "--health-probe-bind-address=$(POD_IP):10357",
        QUARANTINE_FLAG,
        "--cluster-status-update-frequency=10s",
        f"--leader-elect-resource-namespace={options.namespace}",
    )
    work = Workload(
        app=CONTROLLER_MANAGER,
        flags=flags,
        files=[config_files(CONTROLLER_MANAGER)],
        ports=[("server", 10357), ("metrics", 8080)],
        probes=healthy(http_port=10357),
    )
    return build(work, options)


def webhook(options: Options) -> Obj:
    flags = _logged(
        f"{PROGRAMS}/{WEBHOOK}",
        f"--kubeconfig={CONFIG_FILE}",
        "--bind-address=$(POD_IP)",
        "--metrics-bind-address=$(POD_IP):8080",
        "--health-probe-bind-address=$(POD_IP):8000",
        f"--secure-port={SERVING_PORT}",
        f"--cert-dir={WEBHOOK_FOLDER}",
    )
    work = Workload(
        app=WEBHOOK,
        flags=flags,
        files=[config_files(WEBHOOK), secret_files(WEBHOOK_CERTIFICATE, WEBHOOK_FOLDER)],
        ports=[("webhook", SERVING_PORT), ("metrics", 8080)],
        probes={"readinessProbe": http_probe("/readyz", SERVING_PORT, 0, 3, 5)},
    )
    return build(work, options)
