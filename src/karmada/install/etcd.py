"""etcd in the host cluster: a StatefulSet whose members know each other by name.

Every client needs a certificate: there is no listener without TLS for those who may forward ports to the pod. Probes
use a path that etcd has had for long, so that older images can be given.
"""

from __future__ import annotations

from typing import Final

from karmada.install.extra_args import command_line
from karmada.install.names import APPLICATION, CLAIM, ETCD, ETCD_CERTIFICATES, ETCD_FOLDER, PKI_FOLDER
from karmada.install.options import Options
from karmada.install.pods import container, http_probe, mount, pod_name, pod_template, preferably_apart, secret_volume
from karmada.install.stores import claim_spec, etcd_host, etcd_members, node_selector
from karmada.kube.objects.types import Obj

_DATA: Final = "etcd-data"
_CIPHERS: Final = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)


def etcd_command(options: Options) -> list[str]:
    members = [f"{name}=http://{etcd_host(options, name)}:2380" for name in etcd_members(options)]
    usual = [
        "/usr/local/bin/etcd",
        "--name=$(POD_NAME)",
        "--listen-peer-urls=http://$(POD_IP):2380",
        "--listen-client-urls=https://$(POD_IP):2379",
        "--listen-metrics-urls=http://$(POD_IP):2381",
        f"--advertise-client-urls=https://{etcd_host(options, '$(POD_NAME)')}:2379",
        f"--initial-cluster={','.join(members)}",
        "--initial-cluster-state=new",
        "--client-cert-auth=true",
        f"--cert-file={PKI_FOLDER}/etcd-server.crt",
        f"--key-file={PKI_FOLDER}/etcd-server.key",
        f"--trusted-ca-file={PKI_FOLDER}/etcd-ca.crt",
        f"--data-dir={ETCD_FOLDER}",
        f"--cipher-suites={','.join(_CIPHERS)}",
        "--initial-cluster-token=etcd-cluster",
        "--initial-advertise-peer-urls=http://$(POD_IP):2380",
        "--peer-client-cert-auth=false",
        f"--peer-trusted-ca-file={PKI_FOLDER}/etcd-ca.crt",
        f"--peer-key-file={PKI_FOLDER}/etcd-server.key",
        f"--peer-cert-file={PKI_FOLDER}/etcd-server.crt",
    ]
    return command_line(usual, options.etcd.extra_args)


def etcd_stateful_set(options: Options) -> Obj:
    volume = options.volume
    main = container(
        ETCD,
        options.images.etcd(options.etcd.image),
        etcd_command(options),
        mounts=[
            mount(_DATA, ETCD_FOLDER, read_only=False),
            mount("etcd-config", "/etc/etcd", read_only=False),
            mount(ETCD_CERTIFICATES, PKI_FOLDER),
        ],
        ports=[("client", 2379), ("server", 2380), ("metrics", 2381)],
        probes={
            "livenessProbe": http_probe("/health?serializable=true", 2381, 60, 10, 5, tls=False),
            "readinessProbe": http_probe("/health", 2381, 1, 2, 5, tls=False, fails=30),
        },
        pull_policy=options.images.pull_policy,
        env=[pod_name()],
    )
    volumes = [secret_volume(ETCD_CERTIFICATES, ETCD_CERTIFICATES), {"name": "etcd-config", "emptyDir": {}}]
    on_node = volume.mode == "hostPath"
    if on_node:
        volumes.append({"name": _DATA, "hostPath": {"path": volume.path, "type": "DirectoryOrCreate"}})
    elif volume.mode == "emptyDir":
        volumes.append({"name": _DATA, "emptyDir": {}})
    template = pod_template(ETCD, main, volumes, options.etcd, options.images, root=on_node)
    pod = template["spec"]
    pod["affinity"] = preferably_apart(ETCD)
    del pod["tolerations"]
    if on_node:
        pod["nodeSelector"] = node_selector(volume)
    spec: Obj = {
        "replicas": options.etcd.replicas,
        "serviceName": ETCD,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {"app": ETCD}},
        "template": template,
    }
    if volume.mode == "PVC":
        spec["volumeClaimTemplates"] = [{"metadata": {"name": _DATA, "labels": CLAIM}, "spec": claim_spec(volume)}]
    metadata = {"name": ETCD, "namespace": options.namespace, "labels": {**APPLICATION, "app": ETCD}}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}
