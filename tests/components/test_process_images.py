"""The images that run as processes: the one image has every program that is installed."""

from __future__ import annotations

import tomllib
from pathlib import Path

from karmada.components.process_images import known_images
from karmada.kube.sim.processes.images import ImageTable
from tests.support.cases import cases

ROOT = Path(__file__).parents[2]
SCRIPTS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
_FOR_PEOPLE = {"kubectl-karmada", "kubectl_complete-karmada", "karmada-sim"}
TABLE = ImageTable(known_images())


def test_every_program_is_a_command_of_the_one_image() -> None:
    rule = TABLE.of("docker.io/pykarmada/karmada:v0.1.0")
    assert rule is not None
    programs = {name: argv[-1] for name, argv in rule.programs("docker.io/pykarmada/karmada:v0.1.0").items()}
    assert programs == {name: SCRIPTS[name].partition(":")[0] for name in SCRIPTS.keys() - _FOR_PEOPLE}
    assert rule.command == rule.commands["karmada"]


@cases(
    ("registry.k8s.io/kube-apiserver:v1.35.2", "kube_apiserver"),
    ("private.example.com:5000/x/kube-controller-manager:v1.35.2", "kube_controller_manager"),
    ("docker.io/karmada/karmada-scheduler:v1.18.0", "scheduler"),
    ("example.com/karmada@sha256:0", "karmada"),
)
def test_an_image_with_the_name_of_a_program_runs_it(image: str, module: str) -> None:
    rule = TABLE.of(image)
    assert rule is not None
    assert rule.command[-1] == f"karmada.components.{module}"


def test_other_images_are_simulated() -> None:
    assert TABLE.of("docker.io/library/nginx:1.27") is None
    assert TABLE.of("docker.io/karmada/karmada-operator:v1.18.0") is None
