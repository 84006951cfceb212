"""By which flags a server that stores objects beside the API server reaches the same etcd."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from karmada.install.names import ETCD, PKI_FOLDER, service_host
from karmada.install.options import InstallError
from karmada.kube.objects.types import Obj

_COPIED = ("--etcd-servers=", "--etcd-prefix=", "--etcd-cafile=", "--etcd-certfile=", "--etcd-keyfile=")
_FILES = {"cafile": "etcd-ca.crt", "certfile": "etcd-client.crt", "keyfile": "etcd-client.key"}


def store_flags(api_server: Obj, etcd: Obj | None, namespace: str, domain: str) -> list[str]:
    """From the Deployment of the API server, and the StatefulSet of etcd if it is in the host cluster."""
    if etcd is None:
        copied = [word for word in command_of(api_server) if word.startswith(_COPIED)]
        if not any(word.startswith(_COPIED[0]) for word in copied):
            raise InstallError(
                "karmada-search stores its registries in etcd, which this control plane does not have: a control plane "
                "in one Deployment ('karmadactl init' without flags) has search built in"
            )
        return copied
    replicas = etcd["spec"].get("replicas", 1)
    hosts = (service_host(f"{ETCD}-{number}.{ETCD}", namespace, domain) for number in range(replicas))
    servers = ",".join(f"https://{host}:2379" for host in hosts)
    return [f"--etcd-servers={servers}", *(f"--etcd-{flag}={PKI_FOLDER}/{file}" for flag, file in _FILES.items())]


def is_all_in_one(api_server: Obj) -> bool:
    """Return whether this Deployment is a whole control plane."""
    command: Sequence[str] = list(command_of(api_server))
    return bool(command) and command[0].rpartition("/")[2] == "karmada"


def command_of(workload: Obj) -> Iterator[str]:
    for container in workload["spec"]["template"]["spec"]["containers"]:
        yield from (*(container.get("command") or ()), *(container.get("args") or ()))
