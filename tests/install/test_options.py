"""What the flags of init mean, and which are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karmada.install.flags import FLAGS, restored, to_save
from karmada.install.options import InstallError, options_from
from tests.support.cases import cases


@cases(
    ({}, True, "sqlite", "nothing was said about separate components or etcd"),
    ({"etcd-replicas": 1, "port": 30000}, True, "sqlite", "nothing was said about separate components or etcd"),
    ({"karmada-apiserver-image": "me/karmada:1"}, True, "sqlite", "nothing was said"),
    ({"karmada-apiserver-extra-args": ("--v=4",)}, True, "sqlite", "nothing was said"),
    ({"storage-classes-name": "fast"}, True, "sqlite", "nothing was said"),
    ({"etcd-storage-mode": "PVC"}, False, "etcd", "--etcd-storage-mode is about separate components"),
    ({"external-etcd-servers": "https://e:2379"}, False, "etcd", "--external-etcd-servers is about"),
    ({"karmada-webhook-replicas": 2}, False, "etcd", "--karmada-webhook-replicas is about"),
    ({"karmada-apiserver-replicas": 3}, False, "etcd", "--karmada-apiserver-replicas is about"),
    ({"karmada-apiserver-image": "k/kube-apiserver:v1"}, False, "etcd", "--karmada-apiserver-image is about"),
    ({"kube-image-mirror-country": "cn"}, False, "etcd", "--kube-image-mirror-country is about"),
    ({"store": "etcd"}, False, "etcd", "--store is about"),
    ({"store": "sqlite"}, True, "sqlite", "nothing was said"),
    ({"all-in-one": True}, True, "sqlite", "--all-in-one=true"),
    ({"all-in-one": False}, False, "etcd", "--all-in-one=false"),
    ({"all-in-one": False, "store": "sqlite"}, False, "sqlite", "--all-in-one=false"),
)
def test_the_layout_follows_from_the_flags(given: dict[str, Any], all_in_one: bool, store: str, why: str) -> None:
    options = options_from(given)
    assert (options.all_in_one, options.store) == (all_in_one, store)
    assert options.why.startswith(why)


@cases(
    ({"etcd-extra-args": ("x",)}, '--etcd-extra-args: argument "x" is invalid: no preceding --key found'),
    ({"karmada-apiserver-advertise-address": "host"}, '--karmada-apiserver-advertise-address: "host" is not an IP'),
    ({"cert-external-ip": "10.0.0.1,nine"}, '--cert-external-ip: "nine" is not an IP address'),
    ({"ca-cert-file": "ca.crt"}, "--ca-cert-file and --ca-key-file are needed together"),
    ({"image-pull-policy": "Often"}, "invalid image pull policy: Often"),
    (
        {"external-etcd-servers": "https://e", "external-etcd-client-key-path": "k"},
        "--external-etcd-client-cert-path and --external-etcd-client-key-path are needed together",
    ),
    ({"etcd-storage-mode": "disk"}, "--etcd-storage-mode: unsupported mode disk"),
    ({"store": "etcd", "etcd-data": ""}, "--etcd-data is needed with --etcd-storage-mode hostPath"),
    ({"etcd-replicas": 3}, "--etcd-replicas 3 needs a volume for each pod"),
    ({"wait-component-ready-timeout": -1}, "--wait-component-ready-timeout must not be negative"),
    ({"cert-validity-period": 0.0}, "--cert-validity-period must be a positive duration"),
    ({"port": 0}, "--port: 0 is not a port"),
    ({"karmada-scheduler-replicas": 0}, "--karmada-scheduler-replicas must be at least 1"),
    ({"all-in-one": True, "etcd-storage-mode": "PVC"}, "--etcd-storage-mode has no effect with --all-in-one"),
    ({"all-in-one": True, "store": "etcd"}, "--all-in-one keeps its state in SQLite"),
    ({"all-in-one": False, "store": "sqlite", "karmada-apiserver-replicas": 2}, "--karmada-apiserver-replicas 2"),
    ({"store": "sqlite", "external-etcd-servers": "https://e"}, "--store sqlite and --external-etcd-servers"),
    ({"store": "sqlite", "kube-image-tag": "v1.30.0"}, "--store sqlite needs our API server"),
)
def test_flags_that_cannot_work_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InstallError) as error:
        options_from(given)
    assert str(error.value).startswith(message)


def test_certificates_are_beside_the_data_unless_said_otherwise() -> None:
    assert options_from({}).pki == Path("/etc/karmada/pki")
    assert options_from({"karmada-data": "/tmp/k"}).pki == Path("/tmp/k/pki")
    assert options_from({"karmada-data": "/tmp/k", "karmada-pki": "/tmp/p"}).pki == Path("/tmp/p")


def test_what_is_saved_for_the_next_run_says_what_is_installed_and_nothing_of_this_machine() -> None:
    given = {"etcd-extra-args": ("--a=1",), "karmada-data": "/home/me", "port": 31000, "kubeconfig": "x"}
    saved = to_save(given)
    assert saved == {"etcd-extra-args": ["--a=1"], "port": 31000}
    assert restored({**saved, "a-flag-of-another-version": 1}) == {"etcd-extra-args": ("--a=1",), "port": 31000}


def test_every_flag_has_a_type_by_its_default() -> None:
    assert {type(flag.default) for flag in FLAGS.values()} == {str, int, float, tuple, type(None)}
