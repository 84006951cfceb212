"""`karmada-aggregated-apiserver`: clusters and their proxy, for a control plane whose API server is a kube-apiserver.

It serves the group cluster.karmada.io and nothing else, behind an APIService of the control plane. Accounts, roles and
the Secrets of the clusters are the control plane's; the clusters themselves are stored here. The embedded API server
has all this built in and does not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from karmada.components.extension import Extension, delegation_flags, extension_from, run_extension, serving_flags
from karmada.components.flags import (
    feature_gates_flag,
    gates_from,
    ignored,
    insecure_members_flag,
    logging_flags,
    together,
)
from karmada.components.program import CONTEXT, Program
from karmada.components.server_flags import audit_flags, stored_flags
from karmada.kube.objects.shapes import Shape

if TYPE_CHECKING:
    from karmada.kube.objects.types import Obj
    from karmada.kube.runtime.features import FeatureGates
    from karmada.kube.runtime.informer import Informer
    from karmada.kube.server.config import ServerConfig
    from karmada.kube.server.http.request import Request
    from karmada.kube.server.http.results import Result

SERVICE: Final = "karmada-aggregated-apiserver.karmada-system"
GROUP: Final = "cluster.karmada.io"
_KEPT_KEYS: Final = ("token", "caBundle", "kubeconfig")


def mount(extension: Extension, gates: FeatureGates, *, allow_insecure_members: bool = False) -> None:
    """Clusters and their proxy, with the Secrets and the documents of the control plane."""
    from karmada.apiserver.mount import mount_clusters
    from karmada.kube.objects.gvrs import SECRETS

    control_plane = _ControlPlane(extension, extension.informers.of(SECRETS, shape=Shape.summary(_credentials)))
    mount_clusters(
        extension.server,
        extension.rights,
        models=gates.enabled("CustomizedClusterResourceModeling"),
        allow_insecure=allow_insecure_members,
        secret=control_plane.secret,
        local=control_plane.local,
    )


class _ControlPlane:
    """The parts of the control plane that the proxy of clusters uses."""

    def __init__(self, extension: Extension, secrets: Informer) -> None:
        self._extension = extension
        self._secrets = secrets

    async def secret(self, namespace: str, name: str) -> Obj | None:
        """Return a Secret; read from the server if the cache does not have it yet."""
        from karmada.apiserver.members import plain
        from karmada.kube.client.transport import ConnectionFailed
        from karmada.kube.objects.gvrs import SECRETS
        from karmada.kube.runtime.keys import Key
        from karmada.kube.runtime.writes import get_if_exists

        found = self._secrets.get(Key(namespace, name))
        if found is not None:
            return found
        try:
            return await get_if_exists(self._extension.control_plane, SECRETS, name, namespace)
        except ConnectionFailed as error:
            raise plain(str(error)) from error

    async def local(self, request: Request, path: str) -> Result:
        """Paths that are no resource are served by the control plane."""
        from karmada.apiserver.members import plain
        from karmada.kube.client.transport import Call, ConnectionFailed
        from karmada.kube.server.http.results import RawResult

        accept = request.headers.get("Accept", "") or "application/json"
        try:
            answer = await self._extension.transport.answer(Call(request.method, path, accept=accept))
        except ConnectionFailed as error:
            raise plain(str(error)) from error
        return RawResult(answer.body, answer.headers.get("Content-Type", "application/json"), answer.status)


def _credentials(secret: Obj) -> Obj:
    """Return all that is kept of a Secret: there may be many, and large ones."""
    data = secret.get("data") or {}
    metadata = {key: value for key, value in secret["metadata"].items() if key != "managedFields"}
    return {"metadata": metadata, "data": {key: data[key] for key in _KEPT_KEYS if key in data}}


# the process

flags = together(
    delegation_flags,
    stored_flags("clusters"),
    serving_flags,
    audit_flags,
    insecure_members_flag,
    feature_gates_flag,
    ignored("--kube-api-qps --kube-api-burst", "the rate of requests adapts to the API server."),
    logging_flags,
)


@click.command("karmada-aggregated-apiserver", cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Serve cluster.karmada.io behind a kube-apiserver, until interrupted.

    The control plane sends requests here once it has an APIService v1alpha1.cluster.karmada.io for it.
    """
    gates = gates_from(given)

    def make(config: ServerConfig) -> Extension:
        extension = extension_from(given, config, SERVICE)
        mount(extension, gates, allow_insecure_members=given["allow_insecure_members"])
        return extension

    run_extension(given, make, GROUP, f"{GROUP}/")


if __name__ == "__main__":
    main()
