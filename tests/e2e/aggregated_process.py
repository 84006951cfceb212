"""A process that serves a part of the API behind an API server: karmada-aggregated-apiserver by default."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from karmada.kube.objects.types import Obj
from tests.support import forking
from tests.support.programs import READY_SECONDS, Program

NAMESPACE = "karmada-system"


@dataclass
class AggregatedProcess:
    folder: Path
    kubeconfig: Path
    arguments: list[str] = field(default_factory=list)
    name: str = "karmada-aggregated-apiserver"
    service: str = ""
    """The Service that leads to it; by default of the same name."""
    verified: bool = True
    """Whether the control plane checks its certificate, which has the name of the usual Service."""
    versions: tuple[str, ...] = ("v1alpha1.cluster.karmada.io",)
    port: int = 0
    process: subprocess.Popen[str] | None = None

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates"

    def launch(self) -> None:
        """Start, without waiting."""
        self.folder.mkdir(parents=True, exist_ok=True)
        module = self.name.removeprefix("karmada-").replace("-", "_")
        command = [sys.executable, "-m", f"karmada.components.{module}"]
        command += ["--kubeconfig", str(self.kubeconfig), "--cert-dir", str(self.certificates)]
        command += ["--bind-address", "127.0.0.1", "--secure-port", str(self.port), *self.arguments]
        with (self.folder / "log").open("a") as log:
            self.process = forking.start(command, stdout=subprocess.PIPE, stderr=log, text=True)

    def start(self) -> None:
        """Start and wait until it serves."""
        self.launch()
        assert self.process is not None
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert " at https://" in line, f"{line!r}\n{self.log()}"
        self.port = int(line.rsplit(":", 1)[1])

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def stop(self) -> int:
        """Its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(READY_SECONDS)

    def register(self, kubectl: Program) -> None:
        """Have the control plane send its requests here: Service, Endpoints and APIService."""
        if kubectl("get", "namespace", NAMESPACE, check=False).code:
            kubectl("create", "namespace", NAMESPACE)
        ports = [{"name": "https", "port": self.port, "protocol": "TCP"}]
        metadata = {"namespace": NAMESPACE, "name": self.service or self.name}
        bundle = base64.b64encode((self.certificates / "ca.crt").read_bytes()).decode()
        objects = [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": metadata,
                "spec": {"ports": [{**ports[0], "port": 443, "targetPort": self.port}]},
            },
            {
                "apiVersion": "v1",
                "kind": "Endpoints",
                "metadata": metadata,
                "subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": ports}],
            },
            *(self._api_service(name, bundle) for name in self.versions),
        ]
        kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        services = [f"apiservice/{name}" for name in self.versions]
        kubectl("wait", "--for=condition=Available", *services, "--timeout=100s")

    def _api_service(self, name: str, bundle: str) -> Obj:
        version, _, group = name.partition(".")
        return {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": name, "labels": {"app": self.name, "apiserver": "true"}},
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 2000,
                "versionPriority": 10,
                **({"caBundle": bundle} if self.verified else {"insecureSkipTLSVerify": True}),
                "service": {"namespace": NAMESPACE, "name": self.service or self.name, "port": 443},
            },
        }
