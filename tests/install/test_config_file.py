"""The config file of init."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karmada.install.config_file import with_config
from karmada.install.options import InstallError, options_from
from tests.support.cases import cases

HEAD = "apiVersion: config.karmada.io/v1alpha1\nkind: KarmadaInitConfig\n"
WHOLE = f"""{HEAD}spec:
  certificates: {{externalDNS: [a.example, b.example], externalIP: [10.0.0.1], validityPeriod: 48h}}
  etcd:
    local:
      repository: me/etcd
      tag: "3"
      replicas: 3
      pvcSize: 9Gi
      storageMode: PVC
      storageClassesName: fast
      nodeSelectorLabels: {{Disk: ssd}}
      extraArgs: [{{name: quota-backend-bytes, value: "8"}}]
    external: {{endpoints: ["https://ignored:2379"]}}
  hostCluster: {{kubeconfig: /k, context: c, domain: d.local, apiEndpoint: ignored}}
  images:
    imagePullPolicy: Always
    imagePullSecrets: [s1, s2]
    kubeImageTag: v1.34.0
    privateRegistry: {{registry: r.io}}
  components:
    karmadaAPIServer: {{replicas: 2, advertiseAddress: 10.0.0.9, networking: {{namespace: here, port: 31000}}}}
    karmadaScheduler: {{repository: me/scheduler, tag: v9, extraArgs: [{{name: v, value: "4"}}]}}
    karmadaWebhook: {{repository: me/webhook}}
  karmadaDataPath: /data
  karmadaPkiPath: /pki
  karmadaCrds: /crds.tar.gz
  waitComponentReadyTimeout: 60
  unknownKey: ignored
"""


def file(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text)
    return path


def test_every_field_stands_for_its_flag_and_takes_precedence(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "port": 30000,
        "image-pull-policy": "Never",
        "karmada-scheduler-extra-args": ("--v=2", "--plugins=*"),
        "host-cluster-domain": "x",
        "etcd-priority-class": "high",
    }
    found = with_config(given, file(tmp_path, WHOLE))
    assert found == {
        "cert-external-dns": "a.example,b.example",
        "cert-external-ip": "10.0.0.1",
        "cert-validity-period": 48 * 3600.0,
        "etcd-image": "me/etcd:3",
        "etcd-replicas": 3,
        "etcd-pvc-size": "9Gi",
        "etcd-storage-mode": "PVC",
        "storage-classes-name": "fast",
        "etcd-node-selector-labels": "Disk=ssd",
        "etcd-extra-args": ("--quota-backend-bytes=8",),
        "kubeconfig": "/k",
        "context": "c",
        "host-cluster-domain": "d.local",
        "image-pull-policy": "Always",
        "image-pull-secrets": ("s1", "s2"),
        "kube-image-tag": "v1.34.0",
        "private-image-registry": "r.io",
        "karmada-apiserver-replicas": 2,
        "karmada-apiserver-advertise-address": "10.0.0.9",
        "namespace": "here",
        "port": 31000,
        "karmada-scheduler-image": "me/scheduler:v9",
        "karmada-scheduler-extra-args": ("--v=2", "--plugins=*", "--v=4"),
        "karmada-data": "/data",
        "karmada-pki": "/pki",
        "crds": "/crds.tar.gz",
        "wait-component-ready-timeout": 60,
        "etcd-priority-class": "high",
    }
    assert options_from(found).of("karmada-apiserver").replicas == 2


def test_an_external_etcd_counts_where_there_is_no_local_one(tmp_path: Path) -> None:
    text = f"{HEAD}spec: {{etcd: {{external: {{endpoints: [a, b], keyPrefix: /p}}}}}}"
    assert with_config({}, file(tmp_path, text)) == {
        "external-etcd-servers": "a,b",
        "external-etcd-key-prefix": "/p",
    }


@cases(
    ("", "expected one YAML document, a KarmadaInitConfig"),
    (f"{HEAD}---\n{HEAD}", "expected one YAML document"),
    ("kind: KarmadaInitConfig", "apiVersion and kind are needed"),
    ("apiVersion: v1\nkind: KarmadaInitConfig", 'apiVersion "v1" is not known'),
    ("apiVersion: config.karmada.io/v1alpha1\nkind: Other", 'kind "Other" is not known'),
    (f"{HEAD}spec: []", None),
    (f"{HEAD}spec: [1]", "spec: expected a mapping"),
    (f"{HEAD}spec: {{etcd: 5}}", "spec.etcd.local: expected a mapping"),
    (f"{HEAD}spec: {{waitComponentReadyTimeout: soon}}", "spec.waitComponentReadyTimeout: invalid literal"),
    (
        f"{HEAD}spec: {{components: {{karmadaWebhook: {{extraArgs: [{{name: a}}, {{value: x}}]}}}}}}",
        "spec.components.karmadaWebhook.extraArgs[1].name: Required value",
    ),
)
def test_a_file_that_cannot_be_used_is_refused(text: str, message: str | None, tmp_path: Path) -> None:
    path = file(tmp_path, text)
    if message is None:
        assert with_config({}, path) == {}
        return
    with pytest.raises(InstallError) as error:
        with_config({}, path)
    assert str(error.value).startswith(f"--config: {path}: {message}")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InstallError, match=r"--config: /nowhere/x: No such file or directory"):
        with_config({}, Path("/nowhere/x"))
