"""The embedded API server as a control plane has it: with Karmada's kinds and their admission."""

from __future__ import annotations

from dataclasses import replace

from karmada.apiserver.mount import mount
from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.watchcache.collection import History

WITHOUT_PODS = frozenset({"StorageObjectInUseProtection", "ServiceAccount"})
"""Admission that makes sense only where pods run."""
ENCRYPTED = ("secrets", "works.work.karmada.io")
"""Works hold what goes to a cluster, also Secrets."""
_HISTORY = History(most_bytes=4 << 20)
"""The server's own informers are in-process and never far behind; other watches read older events from the store."""


def control_plane_server(
    config: ServerConfig,
    clock: Clock | None = None,
    gates: FeatureGates | None = None,
    *,
    allow_no_execute_taint_policy: bool = False,
    allow_insecure_members: bool = False,
) -> ApiServer:
    """Return the embedded API server with Karmada's kinds and their admission."""
    server = ApiServer(
        replace(
            config,
            namespace_defaults=False,
            disabled_admission=config.disabled_admission | WITHOUT_PODS,
            history=_HISTORY,
            encrypted_resources=ENCRYPTED,
        ),
        clock,
    )
    mount(
        server,
        gates,
        allow_no_execute_taint_policy=allow_no_execute_taint_policy,
        allow_insecure_members=allow_insecure_members,
    )
    return server
