"""A controller that hangs on a template: the process ends, and after the restart everything else works.

The template is hung by an interpreter of a plug-in, in Python, which loops as long as a file exists.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from karmada.interpreter.plugins import GROUP
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.watchdog import EXIT_CODE
from tests.e2e.local_environment import PORT, LocalEnvironment
from tests.support.cases import cases
from tests.support.eventually import LIMIT, eventually_blocking
from tests.support.programs import Program, ServerProcess

pytestmark = pytest.mark.e2e

CONTROLLER = "resource-detector"
PLUGIN = """
from pathlib import Path

api_version, kind = "apps/v1", "Deployment"


def get_replicas(obj):
    while obj["metadata"]["name"].startswith("hung") and Path({file!r}).exists() and not obj["spec"].get("paused"):
        pass
    return obj["spec"]["replicas"]
"""
POLICY = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": "all", "namespace": "default"},
    "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "placement": {}},
}


def deployment(name: str) -> Obj:
    labels = {"app": name}
    container = {"name": "web", "image": "nginx"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def install_interpreter(packages: Path, file: Path) -> Path:
    """Install the plug-in into a folder for PYTHONPATH; it hangs as long as the file exists."""
    info = packages / "hanging-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hanging\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nhanging = hanging\n")
    (packages / "hanging.py").write_text(PLUGIN.format(file=str(file)))
    return packages


class Plane:
    """A control plane with the plug-in; `file` has it hang."""

    def __init__(self, folder: Path, kubectl: str, *flags: str) -> None:
        self.file = folder / "hang"
        self.file.touch()
        packages = install_interpreter(folder / "packages", self.file)
        self.server = ServerProcess(
            folder / "plane",
            ["--hang-timeout=4s", *flags],
            module="karmada.components.karmada",
            greeting="Control plane",
            env={**os.environ, "PYTHONPATH": str(packages)},
        )
        command = [sys.executable, "-m", "karmada.cli.karmadactl"]
        self.karmadactl = Program(command, folder, self.server.kubeconfig)
        self.kubectl = Program([kubectl], folder, self.server.kubeconfig)

    def hang_on(self, name: str) -> None:
        """Create a template that hangs the detector, wait for the end of the process, and start it again."""
        self.apply(deployment(name))
        assert self.server.process is not None
        assert self.server.process.wait(LIMIT) == EXIT_CODE
        self.server.start()

    def apply(self, obj: Obj) -> None:
        self.karmadactl("apply", "-f", "-", stdin=json.dumps(obj))

    def quarantined(self) -> list[str]:
        listed = self.karmadactl("quarantine", "list").lines
        return [re.split(r"\s{2,}", line)[1] for line in listed[1:]]

    def propagated(self) -> set[str]:
        found = self.karmadactl("get", "rb", "-n", "default", "-o", "json").json()["items"]
        return {binding["spec"]["resource"]["name"] for binding in found}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Plane]:
    plane = Plane(tmp_path_factory.mktemp("hanging"), kubectl_path)
    plane.server.start()
    plane.apply(POLICY)
    yield plane
    plane.server.stop()


def key(name: str) -> str:
    return f"default/apps/v1/Deployment/{name}"


def _changed(plane: Plane, name: str) -> None:
    plane.karmadactl("patch", "deployment", name, "-n", "default", "--type=merge", "-p", '{"spec": {"paused": true}}')


def _released(plane: Plane, name: str) -> None:
    plane.file.unlink()
    plane.karmadactl("quarantine", "release", CONTROLLER, key(name))


def _deleted(plane: Plane, name: str) -> None:
    plane.karmadactl("delete", "deployment", name, "-n", "default")


@cases(("hung-changed", _changed, True), ("hung-deleted", _deleted, False), ("hung-released", _released, True))
def test_a_template_that_hangs_a_controller_is_left_alone_until_something_is_done(
    name: str, end: Callable[[Plane, str], None], comes_back: bool, plane: Plane
) -> None:
    plane.hang_on(name)
    log = plane.server.log()
    hangs = next(line for line in log.splitlines() if '"The event loop hangs" ' in line and key(name) in line)
    assert f'key="{CONTROLLER} {key(name)}"' in hangs
    assert "get_replicas (hanging.py:" in hangs
    other = f"beside-{name}"
    plane.apply(deployment(other))
    eventually_blocking(lambda: other in plane.propagated())
    assert name not in plane.propagated()
    eventually_blocking(lambda: plane.quarantined() == [key(name)])
    shown = plane.karmadactl("why", f"deployment/{name}", "-n", "default", check=False).err
    assert f"is in quarantine: {CONTROLLER} leaves {key(name)} alone since" in shown
    metrics = plane.kubectl("get", "--raw", "/metrics").out
    assert f'controller_quarantined_keys{{controller="{CONTROLLER}"}} 1.0' in metrics
    selector = quote(f"involvedObject.name={name},reason=Quarantined")
    events = f"/api/v1/namespaces/default/events?fieldSelector={selector}"
    eventually_blocking(lambda: len(plane.kubectl("get", "--raw", events).json()["items"]) == 1)
    end(plane, name)
    eventually_blocking(lambda: plane.quarantined() == [])
    eventually_blocking(lambda: (name in plane.propagated()) is comes_back)


def test_the_api_stays_when_many_templates_hang_a_controller(tmp_path: Path, kubectl_path: str) -> None:
    plane = Plane(tmp_path, kubectl_path)
    plane.server.start()
    try:
        hung = [deployment(f"hung-{number}") for number in range(5)]
        plane.apply({"apiVersion": "v1", "kind": "List", "items": hung})
        plane.karmadactl("apply", "-f", "-", stdin=json.dumps(POLICY), check=False)  # it may end before it answers
        noted = plane.server.data_dir / "quarantine.json"
        while '"*"' not in (noted.read_text() if noted.exists() else ""):
            assert plane.server.process is not None
            assert plane.server.process.wait(LIMIT) == EXIT_CODE
            with suppress(AssertionError):  # it may hang before it is ready
                plane.server.start()
        assert plane.server.process is not None
        if plane.server.process.poll() is not None:
            plane.server.start()
        eventually_blocking(lambda: len(plane.quarantined()) == 4)
        assert len(set(plane.quarantined()) - {"*"}) == 3
        plane.karmadactl("delete", "deployments", "-n", "default", *(obj["metadata"]["name"] for obj in hung))
        plane.karmadactl("quarantine", "release", "--all")
        plane.apply(deployment("beside"))
        eventually_blocking(lambda: plane.propagated() == {"beside"})
    finally:
        plane.server.stop()


def test_a_worker_that_hangs_is_started_again_by_its_parent(tmp_path: Path, kubectl_path: str) -> None:
    plane = Plane(tmp_path, kubectl_path, "--workers=2")
    plane.server.start()
    try:
        plane.apply(POLICY)
        plane.apply(deployment("hung-worker"))
        eventually_blocking(lambda: plane.quarantined() == [key("hung-worker")])
        assert re.search(r'"A worker has ended and is started again" .*code=70', plane.server.log())
        plane.apply(deployment("beside"))
        eventually_blocking(lambda: "beside" in plane.propagated())
        assert "hung-worker" not in plane.propagated()
        _released(plane, "hung-worker")
        eventually_blocking(lambda: "hung-worker" in plane.propagated())
    finally:
        plane.server.stop()


def test_make_up_starts_a_control_plane_again_that_hung(tmp_path: Path, kubectl_path: str) -> None:
    file = tmp_path / "hang"
    file.touch()
    with LocalEnvironment(tmp_path, kubectl_path) as local:
        local.ctl.env["PYTHONPATH"] = str(install_interpreter(tmp_path / "packages", file))
        with local.foreground(*PORT, "--members", "0", "--", "--hang-timeout=4s") as up:
            pid = local.pids()["karmada"]
            for obj in (POLICY, deployment("hung-here")):
                local.kubectl("apply", "-f", "-", stdin=json.dumps(obj))
            eventually_blocking(lambda: local.pids().get("karmada", pid) != pid)
            eventually_blocking(lambda: local.kubectl("get", "--raw", "/readyz", check=False).out == "ok")
            said = up.interrupt()
        assert "karmada hung and was started again (1 of 5 times in ten minutes)" in said
        assert "Stopped; the state is kept" in said


def test_in_the_background_it_is_started_again_too_and_can_be_stopped(tmp_path: Path, kubectl_path: str) -> None:
    file = tmp_path / "hang"
    file.touch()
    with LocalEnvironment(tmp_path, kubectl_path) as local:
        local.ctl.env["PYTHONPATH"] = str(install_interpreter(tmp_path / "packages", file))
        local.up(*PORT, "--members", "0", "--", "--hang-timeout=4s")
        pid = local.pids()["karmada"]
        for obj in (POLICY, deployment("hung-here")):
            local.kubectl("apply", "-f", "-", stdin=json.dumps(obj))
        eventually_blocking(lambda: local.pids().get("karmada", pid) != pid)
        eventually_blocking(lambda: local.kubectl("get", "--raw", "/readyz", check=False).out == "ok")
        assert local.status()["mode"] == "detached"
        said = (local.folder / "logs" / "local-up.log").read_text()
        assert "karmada hung and was started again (1 of 5 times in ten minutes)" in said
        assert local.down("--purge", "--force").out.startswith("Stopped karmada, karmada-sim\n")
        assert local.pids() == {}
        assert not (local.folder / "logs").exists()
