"""What is installed, and how: the flags with their meaning, checked."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from karmada.install.extra_args import joined
from karmada.install.flags import FLAGS, Given, value
from karmada.install.images import ImageSource
from karmada.install.names import API_SERVER, COMPONENTS
from karmada.kube.objects.errors import UserError

Store: TypeAlias = Literal["sqlite", "etcd"]
MODES: Final = ("emptyDir", "hostPath", "PVC")
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")


class InstallError(UserError):
    """Why an installation cannot go on; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    image: str
    replicas: int
    priority_class: str
    extra_args: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Where a store keeps its files."""

    mode: str
    size: str
    storage_class: str = ""
    path: str = ""
    """Path on the node, with hostPath."""
    node_labels: str = ""
    """Labels of the nodes that have the folder, with hostPath; empty: one is chosen and labelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalEtcd:
    servers: tuple[str, ...]
    ca_file: str
    cert_file: str
    key_file: str
    prefix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateOptions:
    ips: tuple[str, ...]
    names: tuple[str, ...]
    seconds: float
    ca_cert_file: str
    ca_key_file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    namespace: str
    domain: str
    port: int
    advertise_address: str
    folder: Path
    pki: Path
    wait_seconds: float
    """For each component; 0: without limit."""
    images: ImageSource
    certificates: CertificateOptions
    all_in_one: bool
    why: str
    """Why this layout, in a few words."""
    store: Store
    volume: Volume
    etcd: Component
    external_etcd: ExternalEtcd | None
    components: Mapping[str, Component]
    given: Given = field(repr=False)

    @property
    def local_etcd(self) -> bool:
        return self.store == "etcd" and self.external_etcd is None

    def of(self, component: str) -> Component:
        """Return an option by its name in flags."""
        return self.components[component]


def check_flags(given: Given) -> None:
    """InstallError for the first flag that is wrong by itself, in the order in which Karmada's checks them."""
    _extra_args(given)
    _check_addresses(given)
    _check_files(given)
    _external_etcd(given)
    _check_values(given)


def options_from(given: Given) -> Options:
    """InstallError for a flag that is wrong, by itself or together with others."""
    check_flags(given)
    extra = _extra_args(given)
    external = _external_etcd(given)
    components = {name: _component(given, name, extra[name]) for name in COMPONENTS}
    all_in_one, why = layout(given)
    store: Store = value(given, "store") or ("sqlite" if all_in_one else "etcd")
    _check_layout(given, all_in_one, store, components)
    volume = _volume(given, store)
    if external is None:
        _check_volume(volume, value(given, "etcd-replicas") if store == "etcd" else 1)
    else:
        volume = replace(volume, mode="emptyDir")
    return Options(
        namespace=value(given, "namespace"),
        domain=value(given, "host-cluster-domain"),
        port=value(given, "port"),
        advertise_address=value(given, "karmada-apiserver-advertise-address"),
        folder=Path(value(given, "karmada-data")).expanduser(),
        pki=_pki_folder(given),
        wait_seconds=value(given, "wait-component-ready-timeout"),
        images=_images(given),
        certificates=_certificates(given),
        all_in_one=all_in_one,
        why=why,
        store=store,
        volume=volume,
        etcd=_component(given, "etcd", extra["etcd"]),
        external_etcd=external,
        components=components,
        given=given,
    )


# which layout


def layout(given: Given) -> tuple[bool, str]:
    """Return whether everything is one Deployment, and why."""
    chosen = value(given, "all-in-one")
    if chosen is not None:
        return chosen, f"--all-in-one={str(chosen).lower()}"
    needs = sorted(name for name in given if _needs_separate_components(name, given))
    if needs:
        return False, f"--{needs[0]} is about separate components"
    return True, "nothing was said about separate components or etcd"


def _needs_separate_components(name: str, given: Given) -> bool:
    found = given[name]
    if found == FLAGS[name].default:
        return False
    if name == "store":
        return bool(found == "etcd")
    if name == f"{API_SERVER}-image":
        return str(found).rpartition("/")[2].partition(":")[0] == "kube-apiserver"
    if name == f"{API_SERVER}-replicas":
        return True
    about = ("etcd-", "external-etcd-", "kube-image-", *(f"{other}-" for other in COMPONENTS if other != API_SERVER))
    return name.startswith(about)


def _check_layout(given: Given, all_in_one: bool, store: Store, components: Mapping[str, Component]) -> None:
    replicas = components[API_SERVER].replicas
    if all_in_one and store == "etcd":
        raise InstallError("--all-in-one keeps its state in SQLite: for etcd leave it out, or say --all-in-one=false")
    if all_in_one:
        others = sorted(name for name in given if _needs_separate_components(name, given))
        if others:
            raise InstallError(f"--{others[0]} has no effect with --all-in-one: leave one of them out")
    if store == "sqlite" and replicas > 1:
        raise InstallError(
            f"--karmada-apiserver-replicas {replicas} needs etcd: only one API server can use SQLite (--store etcd)"
        )
    if store == "sqlite" and value(given, "external-etcd-servers"):
        raise InstallError("--store sqlite and --external-etcd-servers both say where the state is: use one of them")
    if store == "sqlite" and not all_in_one and _images(given).official:
        raise InstallError("--store sqlite needs our API server: leave out the flags --kube-image-*")


# parts of the options


def _extra_args(given: Given) -> dict[str, tuple[str, ...]]:
    found = {}
    for name in ("etcd", *COMPONENTS):
        try:
            found[name] = tuple(joined(value(given, f"{name}-extra-args")))
        except ValueError as error:
            raise InstallError(f"--{name}-extra-args: {error}") from error
    return found


def _component(given: Given, name: str, extra_args: tuple[str, ...]) -> Component:
    return Component(
        image=value(given, f"{name}-image"),
        replicas=value(given, f"{name}-replicas"),
        priority_class=value(given, f"{name}-priority-class"),
        extra_args=extra_args,
    )


def _images(given: Given) -> ImageSource:
    return ImageSource(
        private_registry=value(given, "private-image-registry"),
        kubernetes_registry=value(given, "kube-image-registry"),
        kubernetes_tag=value(given, "kube-image-tag"),
        mirror_country=value(given, "kube-image-mirror-country").lower(),
        pull_policy=value(given, "image-pull-policy"),
        pull_secrets=_words(value(given, "image-pull-secrets")),
    )


def _certificates(given: Given) -> CertificateOptions:
    return CertificateOptions(
        ips=_words([value(given, "cert-external-ip")]),
        names=_words([value(given, "cert-external-dns")]),
        seconds=value(given, "cert-validity-period"),
        ca_cert_file=value(given, "ca-cert-file"),
        ca_key_file=value(given, "ca-key-file"),
    )


def _external_etcd(given: Given) -> ExternalEtcd | None:
    servers = _words([value(given, "external-etcd-servers")])
    if not servers:
        return None
    names = ("ca-cert", "client-cert", "client-key")
    files = {name: value(given, f"external-etcd-{name}-path") for name in names}
    if bool(files["client-cert"]) is not bool(files["client-key"]):
        raise InstallError("--external-etcd-client-cert-path and --external-etcd-client-key-path are needed together")
    prefix = value(given, "external-etcd-key-prefix")
    return ExternalEtcd(
        servers=servers,
        ca_file=files["ca-cert"],
        cert_file=files["client-cert"],
        key_file=files["client-key"],
        prefix=prefix,
    )


def _volume(given: Given, store: Store) -> Volume:
    storage_class = value(given, "storage-classes-name")
    if store == "sqlite":
        return Volume(
            mode=value(given, "store-volume"),
            size=value(given, "store-size"),
            storage_class=storage_class,
            path="/var/lib/karmada",
        )
    return Volume(
        mode=value(given, "etcd-storage-mode"),
        size=value(given, "etcd-pvc-size"),
        storage_class=storage_class,
        path=value(given, "etcd-data"),
        node_labels=value(given, "etcd-node-selector-labels"),
    )


def _pki_folder(given: Given) -> Path:
    """Beside the data, unless it is said where."""
    if "karmada-pki" in given or "karmada-data" not in given:
        return Path(value(given, "karmada-pki")).expanduser()
    return Path(given["karmada-data"]).expanduser() / "pki"


def _words(texts: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


# checks


def _check_addresses(given: Given) -> None:
    address = value(given, "karmada-apiserver-advertise-address")
    for flag, text in (
        ("karmada-apiserver-advertise-address", address),
        *(("cert-external-ip", ip) for ip in _words([value(given, "cert-external-ip")])),
    ):
        if not text:
            continue
        try:
            ipaddress.ip_address(text)
        except ValueError:
            raise InstallError(f'--{flag}: "{text}" is not an IP address') from None


def _check_files(given: Given) -> None:
    if bool(value(given, "ca-cert-file")) is not bool(value(given, "ca-key-file")):
        raise InstallError("--ca-cert-file and --ca-key-file are needed together")
    policy = value(given, "image-pull-policy")
    if policy not in PULL_POLICIES:
        raise InstallError(f"invalid image pull policy: {policy} (one of {', '.join(PULL_POLICIES)})")


def _check_volume(volume: Volume, replicas: int) -> None:
    if volume.mode == "hostPath" and not volume.path:
        raise InstallError("--etcd-data is needed with --etcd-storage-mode hostPath: the folder on the node")
    if volume.mode == "hostPath" and replicas != 1:
        raise InstallError(
            f"--etcd-replicas {replicas} needs a volume for each pod: hostPath is one, say --etcd-storage-mode PVC"
        )


def _check_values(given: Given) -> None:
    mode = value(given, "etcd-storage-mode")
    if mode not in MODES:
        raise InstallError(f"--etcd-storage-mode: unsupported mode {mode} (one of {', '.join(MODES)})")
    if value(given, "wait-component-ready-timeout") < 0:
        raise InstallError("--wait-component-ready-timeout must not be negative; 0 waits without limit")
    if value(given, "cert-validity-period") <= 0:
        raise InstallError("--cert-validity-period must be a positive duration, e.g. 8760h0m0s")
    if not 1 <= value(given, "port") <= 65535:
        raise InstallError(f"--port: {value(given, 'port')} is not a port")
    for name in ("etcd", *COMPONENTS):
        if value(given, f"{name}-replicas") < 1:
            raise InstallError(f"--{name}-replicas must be at least 1")
