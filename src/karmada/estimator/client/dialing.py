"""Connections to estimators over gRPC, with or without TLS.

gRPC has no switch to skip the verification of a server. Where that is wanted, the certificate that the server shows is
read first and is then the only one that is trusted: whoever answers is accepted, as with any client that does not
verify.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any

from cryptography import x509
from cryptography.x509.oid import NameOID

from karmada.estimator.client.options import Tls
from karmada.estimator.messages import Method
from karmada.estimator.terms import EstimateError
from karmada.kube.client import cluster_names
from karmada.kube.client.grpc_library import grpc

Options = list[tuple[str, Any]]
_OPTIONS: Options = [("grpc.enable_http_proxy", 0)]
_UNANSWERED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class Refused(EstimateError):
    """The estimator answered a call with an error."""


class Unanswered(EstimateError):
    """Nobody answered a call."""


class Connection:
    """A channel to one estimator."""

    def __init__(self, address: str, channel: Any) -> None:
        self.address = address
        self._channel = channel
        self._methods: dict[str, Any] = {}

    async def ready(self) -> bool:
        """Until it is connected, or the first try failed."""
        state = self._channel.get_state(try_to_connect=True)
        while state in (grpc.ChannelConnectivity.IDLE, grpc.ChannelConnectivity.CONNECTING):
            await self._channel.wait_for_state_change(state)
            state = self._channel.get_state(try_to_connect=True)
        return bool(state is grpc.ChannelConnectivity.READY)

    async def call(self, method: Method, request: bytes, *, timeout: float, about: str = "") -> int:
        """Return the number in the response; `about` names the object it is requested for. Refused, Unanswered."""
        try:
            response = await self._unary(method)(
                request, timeout=timeout, metadata=(("object", about),) if about else None
            )
        except grpc.aio.AioRpcError as error:
            raise (Unanswered if error.code() in _UNANSWERED else Refused)(_text(error)) from None
        except grpc.aio.UsageError as closed:
            raise Unanswered(str(closed)) from None
        return int(getattr(response, method.field))

    def _unary(self, method: Method) -> Any:
        unary = self._methods.get(method.name)
        if unary is None:
            unary = self._methods[method.name] = self._channel.unary_unary(
                method.path, response_deserializer=method.response.FromString
            )
        return unary

    async def close(self, grace: float) -> None:
        """Close; calls under way may end within the grace period."""
        await self._channel.close(grace)


def _text(error: Any) -> str:
    """As programs in Go print it."""
    code = "".join(word.capitalize() for word in error.code().name.split("_"))
    return f"rpc error: code = {code} desc = {error.details()}"


async def connect(address: str, tls: Tls) -> Connection:
    """Return a channel that may not be connected yet.

    OSError: a file cannot be read, or there is no certificate to see.
    """
    target, options = _dialled(address)
    if tls.plain:
        return Connection(address, grpc.aio.insecure_channel(target, options))
    if tls.insecure:
        authority = await _shown_certificate(target)
        options = [*options, ("grpc.ssl_target_name_override", _name_in(authority))]
    else:
        assert tls.authority is not None
        authority = tls.authority.read_bytes()
    credentials = grpc.ssl_channel_credentials(authority, *tls.own())
    return Connection(address, grpc.aio.secure_channel(target, credentials, options))


def _dialled(address: str) -> tuple[str, Options]:
    """Return where to connect, and the name to expect there: in a simulated cluster Services have no DNS."""
    host, _, port = address.rpartition(":")
    found = cluster_names.lookup(host, int(port))
    if not found:
        return address, list(_OPTIONS)
    named = [("grpc.ssl_target_name_override", host), ("grpc.default_authority", address)]
    return f"{found[0][0]}:{found[0][1]}", [*_OPTIONS, *named]


async def _shown_certificate(target: str) -> bytes:
    host, _, port = target.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context)
    try:
        shown: ssl.SSLObject = writer.get_extra_info("ssl_object")
        found = shown.getpeercert(binary_form=True)
    finally:
        writer.close()
        with contextlib.suppress(OSError):  # what the server thinks of a client without a certificate
            await writer.wait_closed()
    if found is None:
        raise EstimateError(f"{target} shows no certificate")
    return ssl.DER_cert_to_PEM_cert(found).encode()


def _name_in(certificate: bytes) -> str:
    """Return a name that the certificate is valid for."""
    read = x509.load_pem_x509_certificate(certificate)
    try:
        names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        common = read.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return str(common[0].value) if common else ""
    dns = names.get_values_for_type(x509.DNSName)
    if dns:
        return dns[0].replace("*", "any", 1)
    return next((str(one) for one in names.get_values_for_type(x509.IPAddress)), "")
