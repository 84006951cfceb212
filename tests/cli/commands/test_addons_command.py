"""`karmadactl addons`: which flags belong together, what is confirmed, and what is said when one is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from karmada.cli.commands.addons import _OPTIONS, addons
from karmada.install.addons.catalog import ADDONS
from tests.support.cases import cases


def run(*words: str, typed: str = "") -> tuple[int, str]:
    done = CliRunner().invoke(addons, list(words), input=typed)
    return done.exit_code, done.output


@cases(
    ("enable", "at least one addon must be named"),
    ("enable nonsense", "addon nonsense is not be supported now"),
    ("enable karmada-scheduler-estimator", "name the member with --cluster (-C)"),
    ("disable karmada-scheduler-estimator -f", "name the member with --cluster (-C)"),
    ("enable karmada-search -C m1", "--cluster is for karmada-scheduler-estimator only"),
    ("enable karmada-scheduler-estimator -C m1", "the estimator of m1 needs the kubeconfig of it"),
    ("enable all -C m1 --member-kubeconfig /nowhere/x", "stat /nowhere/x: no such file or directory"),
    ("enable karmada-search --kubeconfig /nowhere/x", "/nowhere/x does not exist"),
    ("list --kubeconfig /nowhere/x", "/nowhere/x does not exist"),
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_line(words: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    code, output = run(*words.split())
    assert code == 1
    assert said in output
    assert output.startswith(("error: ", "Disable Karmada addon"))


def test_without_a_member_all_leaves_the_estimator_out_and_says_so() -> None:
    _, output = run("enable", "all", "--kubeconfig", "/nowhere/x")
    assert output.startswith("Warning: karmada-scheduler-estimator is left out")


@cases(("n\n", 0), ("what\nno\n", 0), ("", 1), ("\n", 1), ("y\n", 1))
def test_disabling_is_confirmed(typed: str, code: int, tmp_path: Path) -> None:
    """A yes goes on, to a kubeconfig that is not there."""
    found, output = run("disable", "karmada-search", "--kubeconfig", str(tmp_path / "x"), typed=typed)
    assert found == code
    assert output.startswith(
        "Disable Karmada addon [karmada-search]\nAre you sure you want to disable the addons? (y/n)"
    )
    assert ("does not exist" in output) is (typed == "y\n")


def test_every_addon_has_flags() -> None:
    assert _OPTIONS.keys() == ADDONS.keys()
