"""Where the state is: the flags by which servers reach etcd or SQLite, and the volumes of both."""

from __future__ import annotations

from typing import Final

from karmada.install.names import CLAIM, ETCD, ETCD_NODE, PKI_FOLDER, STATE_FOLDER, service_host
from karmada.install.options import Options, Volume
from karmada.install.pods import Files
from karmada.kube.objects.types import Obj

_STATE: Final = "karmada-state"


def etcd_members(options: Options) -> list[str]:
    """Return the names of etcd's pods."""
    return [f"{ETCD}-{number}" for number in range(options.etcd.replicas)]


def etcd_host(options: Options, member: str) -> str:
    return service_host(f"{member}.{ETCD}", options.namespace, options.domain)


def etcd_servers(options: Options) -> list[str]:
    external = options.external_etcd
    if external is not None:
        return list(external.servers)
    return [f"https://{etcd_host(options, member)}:2379" for member in etcd_members(options)]


def store_flags(options: Options) -> list[str]:
    """Return the flags of a server that keeps its state."""
    if options.store == "sqlite":
        return [f"--storage=sqlite:{STATE_FOLDER}/state.db"]
    external = options.external_etcd
    files = {"cafile": "etcd-ca.crt", "certfile": "etcd-client.crt", "keyfile": "etcd-client.key"}
    if external is not None:
        present = {"cafile": external.ca_file, "certfile": external.cert_file, "keyfile": external.key_file}
        files = {name: file for name, file in files.items() if present[name]}
    return [
        *(f"--etcd-{name}={PKI_FOLDER}/{file}" for name, file in files.items()),
        f"--etcd-servers={','.join(etcd_servers(options))}",
        *([f"--etcd-prefix={external.prefix}"] if external is not None and external.prefix else []),
    ]


def claim(name: str, namespace: str, volume: Volume) -> Obj:
    """Return a PersistentVolumeClaim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "labels": CLAIM},
        "spec": claim_spec(volume),
    }


def claim_spec(volume: Volume) -> Obj:
    spec: Obj = {
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Filesystem",
        "resources": {"requests": {"storage": volume.size}},
    }
    return {**spec, "storageClassName": volume.storage_class} if volume.storage_class else spec


def state_claim(app: str) -> str:
    return f"{app}-state"


def state_files(app: str, options: Options) -> Files:
    """Return a server's own files: its state with SQLite, else nothing but keys that the store has, too."""
    return Files({"name": _STATE, "mountPath": STATE_FOLDER}, _state_volume(app, options))


def _state_volume(app: str, options: Options) -> Obj:
    volume = options.volume
    if options.store == "etcd" or volume.mode == "emptyDir":
        return {"name": _STATE, "emptyDir": {}}
    if volume.mode == "hostPath":
        return {"name": _STATE, "hostPath": {"path": f"{volume.path}/{app}", "type": "DirectoryOrCreate"}}
    return {"name": _STATE, "persistentVolumeClaim": {"claimName": state_claim(app)}}


def node_selector(volume: Volume) -> dict[str, str]:
    """With hostPath: the labels of the nodes that have the folder."""
    if volume.mode != "hostPath":
        return {}
    if not volume.node_labels:
        return {ETCD_NODE: ""}
    pairs = (label.strip().partition("=") for label in volume.node_labels.split(",") if label.strip())
    return {key: text for key, _, text in pairs}
