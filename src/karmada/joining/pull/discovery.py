"""Discovery: the authority of a control plane of which only the address and a bootstrap token are known.

cluster-info is read without verifying the server. The token's signature in it proves that the text comes from a server
that knows the token. With pins the authority must also be one of those that were named beforehand, and is then used to
read the same text again: a server in between that has the token cannot pass that.
"""

from __future__ import annotations

import base64
import binascii
import random
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from karmada.joining.join import JoinError, Progress, quiet
from karmada.joining.pull.pins import check_pinned
from karmada.kube.client.client import Client
from karmada.kube.client.config import Material, RestConfig
from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.bootstrap_tokens import (
    INFO_KEY,
    INFO_NAME,
    INFO_NAMESPACE,
    SIGNATURE_PREFIX,
    BootstrapToken,
    is_signed_by,
)
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.times import format_duration
from karmada.kube.runtime.waiting import with_timeout

RETRY_SECONDS: Final = 5.0
_JITTER: Final = 0.3
Connect: TypeAlias = Callable[[RestConfig], AbstractAsyncContextManager[Client]]
"""Opens a client, which is closed at the end of the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Where the control plane is, and how it is recognised."""

    server: str
    token: BootstrapToken
    pins: frozenset[str] = frozenset()
    """Accepted authorities; none: the signature alone is trusted."""
    timeout: float = 300.0
    new_token: str = "karmadactl token create"
    """The command that creates a token, for messages."""


async def discover(
    connect: Connect, discovery: Discovery, *, clock: Clock = SYSTEM, progress: Progress = quiet
) -> RestConfig:
    """Return how the control plane is reached and verified, without credentials; JoinError for an unproven identity."""
    try:
        return await _discover(connect, discovery, clock, progress)
    except ValueError as error:
        raise JoinError(f"couldn't validate the identity of the API Server: {error}") from error


async def _discover(connect: Connect, discovery: Discovery, clock: Clock, progress: Progress) -> RestConfig:
    unverified = RestConfig(server=discovery.server, insecure=True)
    text = _signed_text(await _cluster_info(connect, unverified, discovery, clock, progress), discovery)
    authority = _authority(text)
    verified = replace(unverified, insecure=False, ca=Material(data=authority))
    if not discovery.pins:
        return verified
    try:
        check_pinned(authority, discovery.pins)
    except ValueError as error:
        raise ValueError(f"cluster CA found in {INFO_NAME} ConfigMap is invalid: {error}") from error
    again = await _cluster_info(connect, verified, discovery, clock, progress)
    if again.get(INFO_KEY) != text:
        raise ValueError(
            f"the second kubeconfig from the {INFO_NAME} ConfigMap (using validated TLS) was different from the first"
        )
    return verified


async def _cluster_info(
    connect: Connect, config: RestConfig, discovery: Discovery, clock: Clock, progress: Progress
) -> dict[str, str]:
    """Return the data of cluster-info once it has the token's signature; the last reason it had not when time is up."""
    problem = f"no response within {format_duration(discovery.timeout)}"

    async def read() -> dict[str, str]:
        nonlocal problem
        async with connect(config) as client:
            while True:
                try:
                    return await _read(client, discovery)
                except (ApiError, ConnectionFailed, ValueError) as error:
                    if _is_distrust(error):
                        raise
                    problem = str(error)
                progress(f"{problem}; trying again")
                await clock.sleep(_pause(discovery.timeout))

    try:
        return await with_timeout(clock, read(), discovery.timeout)
    except TimeoutError:
        raise ValueError(problem) from None
    except ConnectionFailed as error:
        raise ValueError(str(error)) from error


async def _read(client: Client, discovery: Discovery) -> dict[str, str]:
    data: dict[str, str] = (await client.get(CONFIG_MAPS, INFO_NAME, INFO_NAMESPACE)).get("data") or {}
    if not data.get(SIGNATURE_PREFIX + discovery.token.id):
        raise ValueError(
            f'could not find a JWS signature in the {INFO_NAME} ConfigMap for token ID "{discovery.token.id}": '
            "the token is invalid for this cluster or it has expired. "
            f'Use "{discovery.new_token}" to create a new valid token'
        )
    return data


def _pause(timeout: float) -> float:
    return min(RETRY_SECONDS, timeout) * (1 + random.random() * _JITTER)


def _is_distrust(error: BaseException | None) -> bool:
    """Return whether the server's certificate is not accepted: trying again does not change that."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = getattr(error, "certificate_error", None) or error.__cause__
    return False


def _signed_text(data: dict[str, str], discovery: Discovery) -> str:
    text = data.get(INFO_KEY)
    if not text:
        raise ValueError(
            f"there is no {INFO_KEY} key in the {INFO_NAME} ConfigMap. This API Server isn't set up for token "
            "bootstrapping, can't connect"
        )
    if not is_signed_by(text, data[SIGNATURE_PREFIX + discovery.token.id], discovery.token):
        raise ValueError("failed to verify JWS signature of received cluster info object, can't trust this API Server")
    return text


def _authority(text: str) -> bytes:
    """Return the certificates of the one cluster in the kubeconfig of cluster-info; files it names are not read."""
    try:
        clusters = Kubeconfig.parse(text).clusters
        data = [cluster.get("certificate-authority-data") or "" for cluster in clusters.values()]
        authorities = [base64.b64decode(encoded, validate=True) for encoded in data]
    except (KubeconfigError, binascii.Error) as error:
        raise ValueError(f"couldn't parse the kubeconfig file in the {INFO_NAME} ConfigMap: {error}") from error
    if len(authorities) != 1:
        raise ValueError(
            f"expected the kubeconfig file in the {INFO_NAME} ConfigMap to have a single cluster, "
            f"but it had {len(authorities)}"
        )
    if not authorities[0]:
        raise ValueError(f"the kubeconfig file in the {INFO_NAME} ConfigMap has no certificate authority")
    return authorities[0]
