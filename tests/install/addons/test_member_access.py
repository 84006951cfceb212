"""A kubeconfig for a pod: one context, nothing in files, and no program that a pod does not have."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada.install.addons.member_access import self_contained
from karmada.install.options import InstallError
from tests.support.cases import cases


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "ca.crt").write_text("authority")
    (tmp_path / "token").write_text("secret\n")
    clusters = {"a": {"server": "https://a", "certificate-authority": "ca.crt"}, "b": {"server": "https://b"}}
    users = {
        "ann": {"tokenFile": "token"},
        "bob": {"exec": {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1"}},
    }
    contexts = {"here": {"cluster": "a", "user": "ann"}, "there": {"cluster": "b", "user": "bob"}}
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump({
        "current-context": "here",
        "clusters": [{"name": name, "cluster": cluster} for name, cluster in clusters.items()],
        "users": [{"name": name, "user": user} for name, user in users.items()],
        "contexts": [{"name": name, "context": context} for name, context in contexts.items()],
    }))  # fmt: skip
    return file


@cases("", "here")
def test_what_files_hold_is_in_it_and_other_contexts_are_not(context: str, path: Path) -> None:
    found: dict[str, Any] = yaml.safe_load(self_contained(path, context))
    authority = base64.b64encode(b"authority").decode()
    assert found["current-context"] == "here"
    assert found["clusters"] == [
        {"name": "a", "cluster": {"server": "https://a", "certificate-authority-data": authority}}
    ]
    assert found["users"] == [{"name": "ann", "user": {"token": "secret"}}]
    assert [each["name"] for each in found["contexts"]] == ["here"]


@cases(
    ("there", "gets its credentials from the program aws, which a pod does not have"),
    ("nowhere", 'context "nowhere" does not exist'),
)
def test_what_a_pod_cannot_use_is_refused(context: str, problem: str, path: Path) -> None:
    with pytest.raises(InstallError, match=f"--member-kubeconfig: .*{problem}"):
        self_contained(path, context)


def test_a_file_that_is_not_there_is_named(path: Path) -> None:
    path.with_name("ca.crt").unlink()
    with pytest.raises(InstallError, match=r"ca\.crt: No such file"):
        self_contained(path)
