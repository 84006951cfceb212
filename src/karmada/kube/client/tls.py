"""TLS contexts for clients, one per distinct set of certificates, shared by all transports of the process.

A context is what connections are pooled by, and costs milliseconds to make, so equal material gives the same context.
Certificate files are looked at again when their time stamps change: a rotated certificate is used for new connections.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from weakref import WeakValueDictionary

from karmada.kube.client.config import Material


class FileReader:
    """The contents of a file, read again when it has changed."""

    __slots__ = ("_contents", "_stamp", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._stamp: tuple[int, int, int] | None = None
        self._contents = b""

    def read(self) -> bytes:
        found = os.stat(self.path)
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp != self._stamp:
            self._contents = Path(self.path).read_bytes()
            self._stamp = stamp
        return self._contents


class MaterialReader:
    """The bytes of a Material, whichever way it is given; b"" when there is none."""

    __slots__ = ("_file", "fixed")

    def __init__(self, material: Material) -> None:
        self.fixed = material.data
        """What is not in a file."""
        self._file = FileReader(material.path) if material.path and not material.data else None

    def read(self) -> bytes:
        return self._file.read() if self._file is not None else self.fixed


_in_use: WeakValueDictionary[tuple[bytes, bytes, bytes, bool], ssl.SSLContext] = WeakValueDictionary()


@lru_cache(maxsize=64)
def client_context(ca: bytes, certificate: bytes, key: bytes, insecure: bool) -> ssl.SSLContext:
    """`ca` empty: the system's authorities; `certificate` empty: no client certificate.

    The same one for as long as somebody has it, however many others there are: a thousand members have one each.
    """
    material = (ca, certificate, key, insecure)
    context = _in_use.get(material)
    if context is None:
        context = _in_use[material] = _made(*material)
    return context


def _made(ca: bytes, certificate: bytes, key: bytes, insecure: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if hasattr(ssl, "VERIFY_X509_STRICT"):
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca:
        context.load_verify_locations(cadata=ca.decode())
    else:
        context.load_default_certs()
    if certificate:
        with _as_file(certificate + b"\n" + key) as path:
            context.load_cert_chain(path)
    context.set_alpn_protocols(["http/1.1"])
    return context


@contextmanager
def _as_file(contents: bytes) -> Iterator[str]:
    """Return a path for the ssl module, which reads keys from files only: in memory where the system can."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("key")
        try:
            os.write(descriptor, contents)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(contents)
        file.flush()
        yield file.name
