"""The controllers of a kube-controller-manager that a control plane needs, as a table.

An API server runs them itself (builtin.py), or leaves them to a kube-controller-manager of its own process, which has
the same table over the network. In a control plane workload kinds are templates, so none of the controllers that make
pods of them is here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.manager import Component
from karmada.kube.server.auth.csr import MAX_SECONDS
from karmada.kube.server.auth.interface import Decides
from karmada.kube.server.auth.pki import CertificateAuthority
from karmada.kube.server.auth.tokens import TokenIssuer
from karmada.kube.server.controllers.bootstrap_tokens import BootstrapSigner, TokenCleaner
from karmada.kube.server.controllers.certificates import RequestApproving, RequestCleaning, RequestSigning
from karmada.kube.server.controllers.cluster_roles import ClusterRoleAggregation
from karmada.kube.server.controllers.expiry import TtlAfterFinished
from karmada.kube.server.controllers.garbage_collector import GarbageCollector
from karmada.kube.server.controllers.namespaces import NamespaceController
from karmada.kube.server.controllers.service_accounts import NamespaceDefaults, TokenSecrets

Part: TypeAlias = Reconciler | Component


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The parts that controllers are made of; those that need a key run only where there is one."""

    client: Callable[[str], Client]
    """A client by the name of who uses it."""
    informers: Informers
    clock: Clock
    rights: Decides
    namespace_deletion_delay: float = 5.0
    root_pem: bytes = b""
    """Authority by which clients verify the API server; it is put into token Secrets and into every namespace."""
    issuer: TokenIssuer | None = None
    signer: CertificateAuthority | None = None
    longest_certificate: float = MAX_SECONDS
    collect_after: Callable[[], Awaitable[object]] | None = None
    """Wait for what the garbage collector needs before it reads all objects."""

    @property
    def shared(self) -> Client:
        return self.client("kube-controller-manager")


class Row(NamedTuple):
    names: tuple[str, ...]
    """Names in --controllers, in the shorter and in the longer form."""
    make: Callable[[Needs], Part | None]
    """None where something that it needs is missing."""


def _namespaces(needs: Needs) -> Part:
    client = needs.client("kube-controller-manager/namespace-controller")
    return NamespaceController(client, needs.informers, needs.clock, needs.namespace_deletion_delay)


def _tokens(needs: Needs) -> Part | None:
    if needs.issuer is None:
        return None
    return TokenSecrets(needs.shared, needs.informers, needs.issuer, needs.root_pem)


def _signing(needs: Needs) -> Part | None:
    if needs.signer is None:
        return None
    longest = int(needs.longest_certificate)
    return RequestSigning(needs.shared, needs.informers, needs.signer, needs.clock, longest)


NAMESPACE_DEFAULTS = "serviceaccount"
ROWS: tuple[Row, ...] = (
    Row(("namespace", "namespace-controller"), _namespaces),
    Row(("serviceaccount-token", "legacy-serviceaccount-token-controller"), _tokens),
    Row(
        ("csrapproving", "certificatesigningrequest-approving-controller"),
        lambda needs: RequestApproving(needs.shared, needs.informers, needs.rights, needs.clock),
    ),
    Row(("csrsigning", "certificatesigningrequest-signing-controller"), _signing),
    Row(
        ("csrcleaner", "certificatesigningrequest-cleaner-controller"),
        lambda needs: RequestCleaning(needs.shared, needs.informers, needs.clock),
    ),
    Row(
        ("bootstrapsigner", "bootstrap-signer-controller"),
        lambda needs: BootstrapSigner(needs.shared, needs.informers, needs.clock),
    ),
    Row(
        ("tokencleaner", "token-cleaner-controller"),
        lambda needs: TokenCleaner(needs.shared, needs.informers, needs.clock),
    ),
    Row(
        ("clusterrole-aggregation", "clusterrole-aggregation-controller"),
        lambda needs: ClusterRoleAggregation(needs.shared, needs.informers),
    ),
    Row(
        ("ttl-after-finished", "ttl-after-finished-controller"),
        lambda needs: TtlAfterFinished(needs.shared, needs.informers, needs.clock),
    ),
    Row(
        (NAMESPACE_DEFAULTS, "serviceaccount-controller", "root-ca-cert-publisher"),
        lambda needs: NamespaceDefaults(needs.shared, needs.informers, needs.root_pem),
    ),
    Row(
        ("garbagecollector", "garbage-collector-controller"),
        lambda needs: GarbageCollector(needs.client("garbage-collector"), needs.clock, needs.collect_after),
    ),
)
OTHERS = frozenset(
    {
        "attachdetach", "bootstrap-signer", "cloud-node-lifecycle", "cronjob", "daemonset", "deployment",
        "device-taint-eviction", "disruption", "endpoint", "endpointslice", "endpointslicemirroring",
        "ephemeral-volume", "horizontalpodautoscaling", "job",
        "kube-apiserver-serving-clustertrustbundle-publisher", "legacy-service-account-token-cleaner",
        "node-lifecycle", "node-route", "nodeipam", "nodelifecycle", "persistentvolume-attach-detach",
        "persistentvolume-binder", "persistentvolume-expander", "persistentvolume-protection",
        "persistentvolumeclaim-protection", "pod-garbage-collector", "podgc", "pv-protection", "pvc-protection",
        "replicaset", "replicationcontroller", "resource-claim", "resourceclaim", "resourcequota", "route",
        "selinux-warning", "service", "service-cidr", "service-lb-controller", "statefulset",
        "storage-version-gc", "storage-version-migrator", "taint-eviction-controller", "ttl",
        "validatingadmissionpolicy-status", "volumeattributesclass-protection",
    }
)  # fmt: skip
"""Further names of kube-controller-manager: accepted, and nothing is run for them."""
_EVERYTHING = "*"


def enabled(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether --controllers enables what has these names: the first entry that names it decides, else `*`."""
    for entry in wanted:
        if entry.removeprefix("-") in names:
            return not entry.startswith("-")
    return _EVERYTHING in wanted


def check(wanted: Sequence[str]) -> None:
    """ValueError for a name that no kube-controller-manager knows."""
    known = {name for row in ROWS for name in row.names} | OTHERS | {_EVERYTHING}
    unknown = [
        name
        for entry in wanted
        if (name := entry.removeprefix("-")) not in known and name.removesuffix("-controller") not in known
    ]
    if unknown:
        ours = ", ".join(row.names[0] for row in ROWS)
        raise ValueError(f'--controllers: "{unknown[0]}" is not in the list of known controllers (run here: {ours})')


def made(needs: Needs, wanted: Sequence[str] = (_EVERYTHING,)) -> list[Part]:
    """Return the enabled controllers whose needs are met."""
    parts = [row.make(needs) for row in ROWS if enabled(row.names, wanted)]
    return [part for part in parts if part is not None]
