"""Where commands look for kubeconfigs, and how they say what went wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from karmada.cli.targeting import connect
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError, Forbidden, Invalid, NotFound, Unauthorized, invalid
from karmada.kube.objects.gvk import GroupKind
from tests.support.cases import cases


def write(path: Path, server: str, context: str = "here", current: str | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"""
apiVersion: v1
kind: Config
clusters: [{{name: {context}, cluster: {{server: "{server}"}}}}]
users: [{{name: {context}, user: {{token: t}}}}]
contexts: [{{name: {context}, context: {{cluster: {context}, user: {context}}}}}]
current-context: {context if current is None else current}
"""
    )
    return path


def several(path: Path, contexts: list[str]) -> Path:
    parts = [f"{{name: {name}, context: {{cluster: c, user: u}}}}" for name in contexts]
    path.write_text(
        f"""
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "https://c"}}}}]
users: [{{name: u, user: {{token: t}}}}]
contexts: [{", ".join(parts)}]
current-context: {contexts[0]}
"""
    )
    return path


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without a kubeconfig, outside of any cluster."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)


def test_the_flag_comes_before_the_environment_and_that_before_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "home/.kube/config", "https://home")
    for find in (connect.control_config, connect.member_config):
        assert find().server == "https://home"
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "env", "https://env")))
    for find in (connect.control_config, connect.member_config):
        assert find().server == "https://env"
        assert find(str(write(tmp_path / "flag", "https://flag"))).server == "https://flag"


def test_only_the_control_plane_is_looked_for_in_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = write(tmp_path / "one", "https://one", "one")
    two = write(tmp_path / "two", "https://two", "two")
    monkeypatch.setenv("KUBECONFIG", f"{one}:{two}")
    assert connect.control_config(context="two").server == "https://two"
    with pytest.raises(connect.Failure, match="missing or incomplete configuration info"):
        connect.member_config(context="two")


@pytest.mark.parametrize(
    ("contexts", "given", "cluster", "chosen"),
    [
        (["a"], "", "m1", ""),
        (["a", "m1"], "", "m1", "m1"),
        (["a", "m1"], "a", "m1", "a"),
    ],
)
def test_of_several_contexts_that_of_the_clusters_name_joins(
    tmp_path: Path, contexts: list[str], given: str, cluster: str, chosen: str
) -> None:
    path = several(tmp_path / "members", contexts)
    assert connect.joining_context(str(path), given, cluster) == chosen


def test_several_contexts_and_none_of_the_clusters_name_need_the_flag(tmp_path: Path) -> None:
    path = several(tmp_path / "members", ["a", "b"])
    with pytest.raises(connect.Failure, match=r'none is called "m9": choose one with --cluster-context \(a, b\)'):
        connect.joining_context(str(path), "", "m9")


def test_a_member_kubeconfig_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(connect.Failure, match=f"{tmp_path}/none does not exist.*--cluster-kubeconfig"):
        connect.member_config(str(tmp_path / "none"))


def test_the_context_is_the_one_requested_or_the_current_one(tmp_path: Path) -> None:
    path = str(write(tmp_path / "config", "https://x", "a", current=""))
    assert connect.control_config(path, "a").server == "https://x"
    with pytest.raises(connect.Failure) as caught:
        connect.control_config(path, "b")
    assert caught.value.message == 'error: context "b" does not exist (known: a)'


@cases((connect.control_config, "--kubeconfig"), (connect.member_config, "--cluster-kubeconfig"))
def test_nothing_found_says_where_it_was_looked_for(find: object, flag: str) -> None:
    with pytest.raises(connect.Failure) as caught:
        find()  # type: ignore[operator]
    message = caught.value.message
    assert message.startswith("error: missing or incomplete configuration info")
    assert all(place in message for place in (flag, "KUBECONFIG", "~/.kube/config"))
    assert "\n" not in message


def test_a_file_that_was_requested_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(connect.Failure) as caught:
        connect.control_config(str(tmp_path / "none"))
    assert caught.value.message == f"error: stat {tmp_path / 'none'}: no such file or directory"


@cases(
    ("a: b: c", "yaml: mapping values are not allowed in this context"),
    ("clusters: 3", "clusters must be a list"),
    ("just words", "not a kubeconfig"),
)
def test_a_malformed_file_is_named_with_what_is_wrong_in_it(
    text: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(path))
    for given in (str(path), ""):
        with pytest.raises(connect.Failure) as caught:
            connect.control_config(given)
        assert caught.value.message == f'error: error loading config file "{path}": {problem}'


def test_a_member_may_be_the_cluster_this_runs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(connect.Failure, match="not in a cluster"):  # no account here, but it was tried
        connect.member_config()
    assert connect.member_config(str(write(tmp_path / "flag", "https://flag"))).server == "https://flag"


def refused(text: str) -> ConnectionFailed:
    error = ConnectionFailed(text)
    error.__cause__ = ConnectionRefusedError(111, "refused")
    return error


KIND = GroupKind("cluster.karmada.io", "Cluster")


@cases(
    (NotFound('clusters "m1" not found'), 'Error from server (NotFound): clusters "m1" not found'),
    (Forbidden("no"), "Error from server (Forbidden): no"),
    (ApiError("broken"), "Error from server: broken"),
    (Unauthorized(), "error: You must be logged in to the server (Unauthorized)"),
    (
        Invalid.of(KIND, "m1", [invalid("spec.a", 1, "bad")]),
        'The Cluster "m1" is invalid: spec.a: Invalid value: 1: bad',
    ),
    (
        Invalid.of(KIND, "m1", [invalid("spec.a", 1, "bad"), invalid("spec.b", 2, "worse")]),
        'The Cluster "m1" is invalid: \n* spec.a: Invalid value: 1: bad\n* spec.b: Invalid value: 2: worse',
    ),
    (
        refused("https://10.0.0.1:6443: Cannot connect to host"),
        "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?",
    ),
    (
        ConnectionFailed("https://x: no response within 60s"),
        "Unable to connect to the server: https://x: no response within 60s",
    ),
    (TimeoutError("too late"), "error: too late"),
)
def test_errors_look_as_those_of_kubectl(error: Exception, shown: str) -> None:
    async def fail() -> None:
        raise error

    with pytest.raises(connect.Failure) as caught:
        connect.run(fail())
    assert caught.value.message == shown
    assert caught.value.exit_code == 1


def test_a_failure_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    connect.failure("cluster name is required").show()
    assert capsys.readouterr().err == "error: cluster name is required\n"


@cases(("1m0s", 60.0), ("500ms", 0.5))
def test_durations_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    assert connect.Duration().convert(text, None, None) == seconds


def test_a_bad_duration_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="invalid duration"):
        connect.Duration().convert("soon", None, None)


@cases("join", "unjoin", "cordon", "taint")
def test_a_command_costs_little_before_it_runs(module: str) -> None:
    """The heavy libraries are not loaded just to show a help text."""
    heavy = "aiohttp", "msgspec", "cryptography", "asyncio", "karmada.kube.client.http_transport", "yaml"
    program = f"import sys, karmada.cli.commands.{module}; print([m for m in {heavy!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
