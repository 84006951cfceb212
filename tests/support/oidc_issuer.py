"""An OpenID Connect issuer as a process of its own: discovery document and keys over HTTPS, from files.

`python -m tests.support.oidc_issuer DIRECTORY` serves what is in DIRECTORY/www with the certificate beside it, prints
its port, and writes each requested path into DIRECTORY/requests. Keys are rotated by writing files.
"""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from tests.support.tls_backend import serving, write

DISCOVERY = ".well-known/openid-configuration"


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


@dataclass
class IssuerKey:
    """A private key of an issuer, RSA or EC P-256; made when it is used, since RSA takes a moment."""

    kid: str
    elliptic: bool = False

    @cached_property
    def private(self) -> rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey:
        return ec.generate_private_key(ec.SECP256R1()) if self.elliptic else rsa.generate_private_key(65537, 2048)

    @property
    def alg(self) -> str:
        return "RS256" if isinstance(self.private, rsa.RSAPrivateKey) else "ES256"

    def jwk(self) -> dict[str, str]:
        public = self.private.public_key()
        if isinstance(public, rsa.RSAPublicKey):
            numbers = public.public_numbers()
            return {"kty": "RSA", "use": "sig", "kid": self.kid, "n": b64(_bytes(numbers.n)), "e": b64(_bytes(65537))}
        point = public.public_numbers()
        x, y = point.x.to_bytes(32, "big"), point.y.to_bytes(32, "big")
        return {"kty": "EC", "kid": self.kid, "alg": "ES256", "crv": "P-256", "x": b64(x), "y": b64(y)}

    def sign(self, claims: dict[str, Any], **header: str) -> str:
        head = {"alg": self.alg, "kid": self.kid, **header}
        message = f"{b64(json.dumps(head).encode())}.{b64(json.dumps(claims).encode())}"
        return f"{message}.{b64(self._signature(message.encode()))}"

    def _signature(self, message: bytes) -> bytes:
        if isinstance(self.private, rsa.RSAPrivateKey):
            return self.private.sign(message, padding.PKCS1v15(), SHA256())
        r, s = decode_dss_signature(self.private.sign(message, ec.ECDSA(SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


class IssuerProcess:
    """Runs the process; `publish` writes what it serves."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (directory / "www" / ".well-known").mkdir(parents=True)
        write(serving(), directory)
        self._start()

    def restart(self) -> None:
        """As new: running, if a test has stopped it, and never requested."""
        if self._process.returncode is not None:
            self._start()
        (self._directory / "requests").unlink(missing_ok=True)

    def _start(self) -> None:
        command = [sys.executable, "-m", "tests.support.oidc_issuer", str(self._directory)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
        assert self._process.stdout is not None
        self.url = f"https://127.0.0.1:{int(self._process.stdout.readline())}"

    def publish(self, *keys: IssuerKey, issuer: str = "") -> None:
        www = self._directory / "www"
        (www / "keys").write_text(json.dumps({"keys": [key.jwk() for key in keys]}))
        document = {"issuer": issuer or self.url, "jwks_uri": f"{self.url}/keys"}
        (www / DISCOVERY).write_text(json.dumps(document))

    def requests(self, path: str = "/keys") -> int:
        """How often a path was requested."""
        log = self._directory / "requests"
        return log.read_text().splitlines().count(path) if log.exists() else 0

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class _Files(SimpleHTTPRequestHandler):
    def log_request(self, *_: object) -> None:
        with Path(self.directory, "..", "requests").open("a") as log:
            log.write(self.path + "\n")


def main(directory: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(directory / "www")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "leaf.crt", directory / "leaf.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
