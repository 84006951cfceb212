"""A control plane in one Deployment, as `kubectl karmada init` installs it when nothing else is said.

One installation for all tests, which follow each other: it is used, killed, removed without its state, and put back.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from karmada.install.addons.catalog import ADDONS
from tests.e2e.installed_plane import NAMESPACE, Installed, policy
from tests.e2e.sim_fleet import SimFleet
from tests.support import forking
from tests.support.eventually import eventually_blocking
from tests.support.programs import Program, alive

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Installed]:
    root = tmp_path_factory.mktemp("install")
    with SimFleet(root, kubectl_path) as fleet:
        fleet.create("host", "--nodes", "1", "--run-processes")
        fleet.create("member1")
        found = Installed(fleet, root, kubectl_path)
        kubectl = Program([kubectl_path], fleet.home, fleet.kubeconfig)
        kubectl.env["PATH"] = forking.shell_path()
        done = kubectl("karmada", "init", "--context=host", "--karmada-data", str(found.data), timeout=180)
        assert "Karmada is installed successfully" in done.out
        assert "everything in one Deployment, with SQLite on a volume (nothing was said about" in done.err
        yield found


def replicas(installed: Installed) -> str:
    """As the control plane shows them; empty while it does not respond."""
    status = ("get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}")
    return installed.karmada(*status, check=False).out


def test_one_pod_is_the_whole_control_plane(installed: Installed) -> None:
    [pod] = installed.pods()
    assert pod["metadata"]["labels"]["app"] == "karmada-apiserver"
    installed.join("member1")
    installed.karmada("create", "deployment", "web", "--image=nginx", "--replicas=2")
    refused = installed.karmada("apply", "-f", "-", stdin=policy(at_least=2), check=False)
    assert "spec.placement.spreadConstraints" in refused.err
    installed.karmada("apply", "-f", "-", stdin=policy())
    eventually_blocking(lambda: replicas(installed) == "2")


def test_some_addons_are_built_in_and_others_run_beside_it(installed: Installed) -> None:
    built_in = [name for name, addon in ADDONS.items() if addon.built_in]
    expected = {**dict.fromkeys(ADDONS, "disabled"), **dict.fromkeys(built_in, "enabled")}
    assert installed.states("-C", "member1") == expected
    installed.addons("enable", "karmada-descheduler")
    assert installed.states()["karmada-descheduler"] == "enabled"
    apps = sorted(pod["metadata"]["labels"]["app"] for pod in installed.pods())
    assert apps == ["karmada-apiserver", "karmada-descheduler"]


def test_it_goes_on_after_it_was_killed(installed: Installed) -> None:
    [(pod, process)] = [each for each in installed.processes().items() if each[0].startswith("karmada-apiserver-")]
    os.kill(process, signal.SIGKILL)
    eventually_blocking(lambda: installed.processes().get(pod) not in (None, process))
    eventually_blocking(lambda: replicas(installed) == "2")


def test_removed_and_installed_again_it_has_its_state(installed: Installed) -> None:
    processes = installed.processes().values()
    said = installed.at_host("deinit", "--force", "--addons").out
    assert "The state is kept in PersistentVolumeClaims: karmada-apiserver-state" in said
    assert not any(map(alive, processes))
    installed.at_host("init", "--karmada-data", str(installed.data))
    assert replicas(installed) == "2"
    installed.until_ready("member1")


def test_with_its_namespace_everything_goes(installed: Installed) -> None:
    processes = installed.processes().values()
    installed.at_host("deinit", "--force", "--purge-namespace")
    eventually_blocking(lambda: not any(map(alive, processes)))
    assert installed.host("get", "namespace", NAMESPACE, check=False).code
    assert not installed.processes()
