"""The estimator service over gRPC, for schedulers and deschedulers of Karmada and of ours.

With a certificate the server speaks TLS (of which the program admits 1.3 and nothing older); with an authority for
clients it admits those alone that have a certificate from it. Files that are replaced are read again at the next
connection. Every failed request has the status Unknown and the text of its error, as Karmada's estimator does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from karmada.estimator import contract
from karmada.estimator.contract import Method
from karmada.estimator.terms import EstimateError, MemberEstimator
from karmada.kube.client.grpc_library import grpc
from karmada.kube.runtime.listening import listen_host
from karmada.kube.runtime.logging import get_logger

_STOP_SECONDS = 5.0
_OPTIONS = [("grpc.so_reuseport", 0)]
"""An address that another process has is an error, not shared with it."""
_OBJECT = "object"
log = get_logger("estimator-server")


class ServingFiles(NamedTuple):
    """In PEM. Without `client_authority`, or with `admit_all`, clients need no certificate."""

    certificate: Path
    key: Path
    client_authority: Path | None = None
    admit_all: bool = False


class _Credentials:
    """The content of the files now, for every new connection."""

    def __init__(self, files: ServingFiles) -> None:
        self._files = files
        self._seen = self._stamps()
        self.first = self._read()

    def _stamps(self) -> list[int]:
        files = self._files
        return [path.stat().st_mtime_ns for path in (files.certificate, files.key, files.client_authority) if path]

    def _read(self) -> Any:
        files = self._files
        authority = files.client_authority.read_bytes() if files.client_authority is not None else None
        pair = (files.key.read_bytes(), files.certificate.read_bytes())
        return grpc.ssl_server_certificate_configuration([pair], root_certificates=authority)

    def changed(self) -> Any:
        """None: as before. What cannot be read is left as it was; the files may be half replaced."""
        try:
            stamps = self._stamps()
            if stamps == self._seen:
                return None
            found = self._read()
        except OSError as error:
            log.error("The serving certificate cannot be read", error)
            return None
        self._seen = stamps
        return found

    def server_credentials(self) -> Any:
        files = self._files
        required = files.client_authority is not None and not files.admit_all
        return grpc.dynamic_ssl_server_credentials(self.first, self.changed, require_client_authentication=required)


class EstimatorServer:
    """A manager's component; `port` 0 takes a free one, which `port` then is."""

    name = "estimator-server"

    def __init__(
        self, estimator: MemberEstimator, *, host: str = "::", port: int = 0, files: ServingFiles | None = None
    ) -> None:
        self.port = port
        self._host = host
        self._estimator = estimator
        self._files = files
        self._server: Any = None

    async def start(self) -> None:
        """OSError: the address is taken, or a file cannot be read."""
        server = grpc.aio.server(options=_OPTIONS)
        handlers = {
            contract.MAX_AVAILABLE_REPLICAS: self._replicas,
            contract.MAX_AVAILABLE_COMPONENT_SETS: self._sets,
            contract.GET_UNSCHEDULABLE_REPLICAS: self._unschedulable,
        }
        methods = {method.name: self._handler(method, handle) for method, handle in handlers.items()}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(contract.SERVICE, methods),))
        self.port = self._listen(server)
        await server.start()
        self._server = server

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop(_STOP_SECONDS)

    def _listen(self, server: Any) -> int:
        host = listen_host(self._host)
        address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        try:
            if self._files is None:
                return int(server.add_insecure_port(address))
            return int(server.add_secure_port(address, _Credentials(self._files).server_credentials()))
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}: {error}") from error

    def _handler(self, method: Method, handle: Callable[[Any], int]) -> Any:
        async def answer(request: Any, context: Any) -> Any:
            try:
                self._check_cluster(request.cluster)
                found = handle(request)
            except EstimateError as error:
                _report(method, context, str(error))
                await context.abort(grpc.StatusCode.UNKNOWN, str(error))
            _report(method, context, found)
            return method.response(**{method.field: found})

        return grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )

    def _check_cluster(self, name: str) -> None:
        if name != self._estimator.cluster:
            raise EstimateError(f"cluster name does not match, got: {name}, desire: {self._estimator.cluster}")

    def _replicas(self, request: Any) -> int:
        query = contract.read_replicas(request)
        return self._estimator.max_available_replicas(query.requirements, query.assumed)

    def _sets(self, request: Any) -> int:
        query = contract.read_sets(request)
        return self._estimator.max_available_component_sets(query.components, query.namespace, query.assumed)

    def _unschedulable(self, request: Any) -> int:
        query = contract.read_unschedulable(request)
        return self._estimator.unschedulable_replicas(query.resource, query.threshold)


def _report(method: Method, context: Any, result: object) -> None:
    """Schedulers name the workload in the metadata of a call."""
    if log.v(4).enabled:
        named = [str(value) for key, value in context.invocation_metadata() or () if key == _OBJECT]
        log.v(4).info("Estimated", method=method.name, object=", ".join(named), result=result)
