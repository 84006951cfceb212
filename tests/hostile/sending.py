"""Blocking requests over TLS, one connection for each thread, so that they cost the event loop of a test nothing."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from pathlib import Path
from typing import Any, NamedTuple

import orjson

_MOST_READ = 64 << 20


class Answer(NamedTuple):
    code: int
    body: bytes

    def json(self) -> Any:
        return orjson.loads(self.body)


class Sender:
    """Requests as the administrator, or as a user whom the administrator impersonates."""

    def __init__(self, port: int, pki: Path, user: str = "") -> None:
        self.port = port
        self._pki = pki
        self._user = user
        self._tls = ssl.create_default_context(cafile=pki / "ca.crt")
        self._tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self._local = threading.local()

    def as_user(self, name: str) -> Sender:
        return Sender(self.port, self._pki, name)

    def __call__(
        self, method: str, path: str, body: Any = None, *, accept: str = "application/json", media: str = ""
    ) -> Answer:
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        headers = {"Accept": accept, "Content-Type": media or "application/json"}
        if self._user:
            headers["Impersonate-User"] = self._user
        return self._send(method, path, data, headers)

    def _send(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Answer:
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self._tls, timeout=300)
            self._local.connection = connection
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            if "watch=" in path:  # its beginning
                answer = Answer(response.status, response.read1(_MOST_READ))
                connection.close()
            else:
                answer = Answer(response.status, response.read())
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            connection.close()  # the server has closed it since the last request
            return self._send(method, path, data, headers)
        except BaseException:
            connection.close()
            raise
        return answer

    def unread(self, path: str) -> socket.socket:
        """Send a request whose answer is never read; returns its connection."""
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        held.connect(("127.0.0.1", self.port))
        found = self._tls.wrap_socket(held, server_hostname="127.0.0.1")
        head = ("GET " + path + " HTTP/1.1", "Host: 127.0.0.1", f"Impersonate-User: {self._user}", "", "")
        found.sendall("\r\n".join(head).encode())
        return found
