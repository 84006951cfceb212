"""Members that the control plane's proxy cannot reach because of how they are registered.

A Cluster without an impersonator, or in Pull mode, is normal in a fleet: a command over several members warns of it
once, with the remedy, and shows the others. It is an error only for a member that was named.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session

_PROXY_CODES = (500, 502, 503, 504)
_NO_IMPERSONATOR = (
    "it has no spec.impersonatorSecretRef; join it with 'karmadactl join', or set the field to a Secret with the token "
    "of a service account of the member that may impersonate users"
)
_PULL = "it is in Pull mode and the control plane cannot reach it ({error}); use the kubeconfig of the cluster itself"


def is_unreachable(error: BaseException) -> bool:
    """Return whether the proxy may have failed rather than the member: its own errors are plain 500s."""
    from karmada.kube.client.transport import ConnectionFailed
    from karmada.kube.objects.errors import ApiError

    if isinstance(error, ApiError):
        return error.http_code in _PROXY_CODES
    return isinstance(error, ConnectionFailed | TimeoutError)


async def settle(control: Session, errors: Mapping[str, str], named: Collection[str]) -> dict[str, str]:
    """Return the errors of unreachable members that are failures of the command; warn of the others."""
    failures: dict[str, str] = {}
    for cluster, message in errors.items():
        problem = await _problem(control, cluster, message)
        if problem and cluster not in named:
            click.echo(f"warning: cluster({cluster}) is skipped: {problem}", err=True)
        else:
            failures[cluster] = problem or message
    return failures


async def _problem(control: Session, cluster: str, error: str) -> str:
    """Return what the registration lacks, and the remedy; "" when the member should be reachable."""
    from karmada.cli.targeting.session import clusters_gvr
    from karmada.kube.objects.errors import ApiError

    try:
        spec = (await control.client.get(clusters_gvr(), cluster)).get("spec") or {}
    except ApiError:
        return ""
    if spec.get("syncMode") == "Pull":
        return _PULL.format(error=error)
    return "" if spec.get("impersonatorSecretRef") else _NO_IMPERSONATOR
