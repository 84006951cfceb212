"""--attach KUBECONFIG[:CONTEXT][=NAME]."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada.local.attaching import Attached, parse, split
from karmada.local.folder import Refused
from tests.support.cases import cases

CONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: kind-test, context: {cluster: c, user: u}}
- {name: "admin@prod:eu", context: {cluster: c, user: u}}
current-context: kind-test
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(CONFIG)
    return path


@cases(
    ("", "", ""),
    (":kind-test", "kind-test", ""),
    ("=west", "", "west"),
    (":kind-test=west", "kind-test", "west"),
    (":admin@prod:eu=west", "admin@prod:eu", "west"),
)
def test_file_context_and_name_are_distinguished(after: str, context: str, name: str, file: Path) -> None:
    assert split(f"{file}{after}") == (file, context, name)


def test_signs_in_the_name_of_a_file_part_nothing(tmp_path: Path) -> None:
    odd = tmp_path / "a=b:c"
    odd.write_text(CONFIG)
    assert split(str(odd)) == (odd, "", "")
    assert split(f"{odd}:kind-test=west") == (odd, "kind-test", "west")


@cases(("", "kind-test", ""), (":kind-test", "kind-test", "kind-test"), (":admin@prod:eu=eu", "eu", "admin@prod:eu"))
def test_a_cluster_is_called_as_its_context_unless_it_is_given_a_name(
    after: str, name: str, context: str, file: Path
) -> None:
    assert parse(f"{file}{after}") == Attached(name, file, context)


@cases(
    (":admin@prod:eu", "cannot be the name of a cluster .*; add =NAME"),
    (":nope", 'context "nope" does not exist'),
    ("=Bad_Name", '"Bad_Name" cannot be the name of a cluster'),
)
def test_what_cannot_be_attached_is_reported_before_anything_starts(after: str, says: str, file: Path) -> None:
    with pytest.raises(Refused, match=says):
        parse(f"{file}{after}")


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=f"{tmp_path}/none: No such file"):
        parse(f"{tmp_path}/none")
