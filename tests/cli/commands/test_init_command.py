"""init and deinit, as people type them, against a simulated host cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from karmada.cli.commands.init import _PHASES
from karmada.cli.karmadactl import main
from karmada.install.phases import PHASES
from karmada.kube.client.manifests import load_manifests
from karmada.kube.objects.types import Obj
from tests.support.background import Background
from tests.support.cases import cases
from tests.support.karmadactl import Karmadactl
from tests.support.kubectl_plane import simulated

MIRROR = "registry.cn-hangzhou.aliyuncs.com/google_containers"


@pytest.fixture(scope="module")
def ctl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Karmadactl]:
    folder = tmp_path_factory.mktemp("init-command")
    with Background() as background:
        sim = background.enter(simulated("kind-cluster01", folder / "host"))
        home = folder / "home"
        home.mkdir()
        yield Karmadactl(home, sim.kubeconfig)


def said(*words: str) -> tuple[int, str]:
    """Of a command line that is refused before anything is reached."""
    done = CliRunner(env={"KUBECONFIG": "/nowhere"}).invoke(main, list(words))
    return done.exit_code, done.stderr


def workloads(text: str) -> dict[str, Obj]:
    return {
        obj["metadata"]["name"]: obj for obj in load_manifests(text) if obj["kind"] in ("Deployment", "StatefulSet")
    }


def image(workload: Obj) -> str:
    return str(workload["spec"]["template"]["spec"]["containers"][0]["image"])


def test_the_command_with_a_mirror_and_volumes_for_etcd_installs_separate_components(
    ctl: Karmadactl, tmp_path: Path
) -> None:
    words = "init --kube-image-mirror-country=cn --etcd-storage-mode PVC --storage-classes-name standard --dry-run"
    done = ctl(*words.split(), "--karmada-data", str(tmp_path / "data"))
    found = workloads(done.out)
    assert len(found) == 7
    assert image(found["etcd"]) == f"{MIRROR}/etcd:3.6.6-0"
    assert image(found["karmada-apiserver"]) == f"{MIRROR}/kube-apiserver:v1.35.2"
    (template,) = found["etcd"]["spec"]["volumeClaimTemplates"]
    assert template["spec"]["storageClassName"] == "standard"
    assert "separate components, with etcd (--etcd-storage-mode is about separate components)" in done.err
    assert not (tmp_path / "data").exists()


def test_the_command_without_flags_installs_one_deployment(ctl: Karmadactl, tmp_path: Path) -> None:
    done = ctl("init", "--context=kind-cluster01", "--dry-run", "--karmada-data", str(tmp_path))
    assert list(workloads(done.out)) == ["karmada-apiserver"]
    assert "everything in one Deployment, with SQLite on a volume (nothing was said about" in done.err
    assert "The manifests contain private keys" in done.err


def test_a_config_file_takes_precedence(ctl: Karmadactl, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: config.karmada.io/v1alpha1\nkind: KarmadaInitConfig\nspec:\n  images: "
        f"{{privateRegistry: {{registry: r.io}}}}\n  karmadaDataPath: {tmp_path}\n"
    )
    done = ctl("init", "--dry-run", "--private-image-registry=other", "--config", str(file))
    assert image(workloads(done.out)["karmada-apiserver"]).startswith("r.io/karmada:")


@cases(
    ("init --karmada-apiserver-extra-args=x", "error: --karmada-apiserver-extra-args: argument"),
    ("init --ca-cert-file=x", "error: --ca-cert-file and --ca-key-file are needed together"),
    ("init --config=/nowhere/c", "error: --config: /nowhere/c: No such file or directory"),
    ("init --image-pull-policy=x", "error: invalid image pull policy: x"),
    ("init --store=x", "error: invalid argument"),
    ("init --nonsense", "error: unknown flag: --nonsense"),
    ("init word", "error: Unexpected args: [word]"),
    ("init phase", "error: name at least one phase (phases: preflight, certs,"),
    ("init phase certs nope", 'error: there is no phase "nope"'),
    ("init", "error: missing or incomplete configuration info (/nowhere does not exist)"),
    ("deinit", "error: missing or incomplete configuration info (/nowhere does not exist)"),
)
def test_a_command_line_that_cannot_work_is_refused_in_one_sentence(words: str, message: str) -> None:
    code, err = said(*words.split())
    assert code == 1
    assert err.startswith(message)


def test_the_phases_are_those_that_exist() -> None:
    assert tuple(PHASES) == _PHASES


# the whole way


def test_phases_are_run_one_by_one_and_deinit_asks_before_it_removes(ctl: Karmadactl, tmp_path: Path) -> None:
    data = ("--karmada-data", str(tmp_path), "-n", "one")
    ctl("init", "phase", "certs", "kubeconfig", *data)
    assert (tmp_path / "pki" / "ca.key").exists()
    missing = ctl("deinit", "-n", "one", check=False)
    assert (missing.code, missing.err) == (1, 'Error from server (NotFound): namespaces "one" not found\n')
    ctl("init", "phase", "host", *data)

    declined = ctl("deinit", "-n", "one", stdin="perhaps\nN\n")
    assert declined.out.count("Are you sure? (y/n): ") == 2
    assert "delete" not in declined.out
    silent = ctl("deinit", "-n", "one", stdin="", check=False)
    assert (silent.code, silent.err) == (1, "error: no answer; --force goes on without one\n")
    tried = ctl("deinit", "-n", "one", "--dry-run")
    assert 'delete Secrets "karmada-cert"' in tried.lines
    assert tried.lines[-1] == "nothing was removed (dry run)"
    removed = ctl("deinit", "-n", "one", "--purge-namespace", stdin="Yes\n")
    assert 'delete Namespace "one"' in removed.lines
    nothing = ctl("deinit", "-n", "default", "--force")
    assert nothing.lines[-1].startswith("namespace default has nothing that init has installed")
    assert "remove Karmada successfully." in removed.lines
