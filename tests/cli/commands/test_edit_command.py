"""edit, with editors that are scripts."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.served_apart import Commands, served_apart

Editor = Callable[[str], dict[str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with served_apart(tmp_path_factory.mktemp("plane")) as commands:
        yield commands


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the files are that the editors see."""
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    """An editor that does this to the file `$1`, after copying what it sees to the end of `seen`."""

    def make(script: str) -> dict[str, str]:
        path = tmp_path / "editor"
        path.write_text(f'#!/bin/sh\ncat "$1" >> "{tmp_path}/seen"\n{script}\n')
        path.chmod(0o755)
        return {"KUBE_EDITOR": str(path), "EDITOR": "false"}

    return make


@pytest.fixture
def config(run: Commands) -> Iterator[str]:
    run("create", "cm", "settings", "--from-literal=colour=blue")
    yield "settings"
    run("delete", "cm", "settings", "--ignore-not-found")


def data(run: Commands, name: str = "settings") -> Any:
    return json.loads(run("patch", "cm", name, "--type=merge", "-p", "{}", "-o", "json").out).get("data")


def test_what_is_saved_is_sent_as_a_patch(run: Commands, config: str, editor: Editor, kept: Path) -> None:
    said = run("edit", "cm", config, "--output-patch", env=editor("sed -i s/blue/red/ $1"))
    assert said.out == 'Patch: {"data":{"colour":"red"}}\nconfigmap/settings edited\n'
    assert data(run) == {"colour": "red"}
    shown = run("patch", "cm", config, "--type=merge", "-p", "{}", "-o", "json", "--show-managed-fields").out
    assert "kubectl-edit" in {entry["manager"] for entry in json.loads(shown)["metadata"]["managedFields"]}
    assert list(kept.iterdir()) == []


def test_nothing_changed_and_nothing_left(run: Commands, config: str, editor: Editor, kept: Path) -> None:
    said = run("edit", "cm", config, env=editor("true"))
    assert (said.out, said.err) == ("", "Edit cancelled, no changes made.\n")
    said = run("edit", "cm", config, env=editor(': > "$1"'))
    assert (said.out, said.err) == ("", "Edit cancelled, saved file was empty.\n")
    assert list(kept.iterdir()) == []


def test_what_is_not_valid_is_opened_again_with_the_reason(
    run: Commands, config: str, editor: Editor, tmp_path: Path
) -> None:
    mending = (
        'if grep -q "^# .*not valid" "$1"; then sed -i "/colour/s/: .*/: green/" "$1"; else echo "x: [" >> "$1"; fi'
    )
    once = f'{mending}\nif grep -q "^# .*not valid" "$1"; then sed -i "/^x:/d" "$1"; fi'
    said = run("edit", "cm", config, env=editor(once))
    assert (said.out, said.err) == ("configmap/settings edited\n", 'error: configmaps "settings" is invalid\n')
    assert data(run) == {"colour": "green"}
    assert "did not find expected node content" in (tmp_path / "seen").read_text()


def test_what_the_server_refuses_is_kept_when_it_comes_back_unchanged(
    run: Commands, config: str, editor: Editor, kept: Path, tmp_path: Path
) -> None:
    script = 'grep -q labels "$1" || sed -i "s/^metadata:/metadata:\\n  labels: {a b: c}/" "$1"'
    said = run("edit", "cm", config, env=editor(script), ok=False)
    [file] = kept.iterdir()
    assert said.code == 1
    assert said.err == (
        'error: configmaps "settings" is invalid\n'
        f'A copy of your changes has been stored to "{file}"\n'
        "error: Edit cancelled, no valid changes were saved.\n"
    )
    assert (
        '# configmaps "settings" was not valid:\n# * metadata.labels: Invalid value: "a b"'
        in (tmp_path / "seen").read_text()
    )


@pytest.mark.parametrize("change", ["s/ConfigMap/Secret/", "s/name: settings/name: others/"])
def test_another_name_or_kind_is_refused(run: Commands, config: str, editor: Editor, kept: Path, change: str) -> None:
    refusal = run.refused("edit", "cm", config, env=editor(f'sed -i "{change}" "$1"'))
    [file] = kept.iterdir()
    assert refusal == (
        f'A copy of your changes has been stored to "{file}"\n'
        "error: At least one of apiVersion, kind and name was changed\n"
    )


def test_an_object_that_is_gone_meanwhile(run: Commands, config: str, editor: Editor, kept: Path) -> None:
    import sys

    gone = f'"{sys.executable}" -m karmada.cli.karmadactl delete cm settings --kubeconfig "{run.kubeconfig}"'
    refusal = run.refused("edit", "cm", config, env=editor(f'{gone}; sed -i s/blue/red/ "$1"'))
    [file] = kept.iterdir()
    assert refusal == (
        'error: configmaps "settings" could not be found on the server\n'
        f'error: The edits you made on deleted resources have been saved to "{file}"\n'
    )


def test_several_at_once_are_a_list(run: Commands, config: str, editor: Editor, tmp_path: Path) -> None:
    run("create", "cm", "more", "--from-literal=colour=black")
    said = run("edit", "cm/settings", "cm/more", env=editor('sed -i s/black/white/ "$1"'))
    assert said.out == "configmap/settings skipped\nconfigmap/more edited\n"
    assert data(run, "more") == {"colour": "white"}
    assert "\nkind: List\n" in (tmp_path / "seen").read_text()


def test_json_and_windows_lines(run: Commands, config: str, editor: Editor, tmp_path: Path) -> None:
    run("edit", "cm", config, "-o", "json", "--windows-line-endings", env=editor('sed -i s/blue/grey/ "$1"'))
    assert data(run) == {"colour": "grey"}
    assert (tmp_path / "seen").read_bytes().startswith(b'{\r\n    "apiVersion": "v1",\r\n')


def test_lists_of_builtin_kinds_are_merged_and_others_replaced(run: Commands, editor: Editor) -> None:
    run("create", "deployment", "web", "--image=nginx:1")
    said = run("edit", "deployment", "web", "--output-patch", env=editor('sed -i s/nginx:1/nginx:2/ "$1"'))
    assert json.loads(said.out.splitlines()[0].removeprefix("Patch: ")) == {
        "spec": {
            "template": {
                "spec": {
                    "$setElementOrder/containers": [{"name": "nginx"}],
                    "containers": [{"image": "nginx:2", "name": "nginx"}],
                }
            }
        }
    }
    policy = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {clusterAffinity: {clusterNames: [member1]}}
"""
    run("create", "-f", "-", stdin=policy)
    said = run("edit", "pp", "web", "--output-patch", env=editor('sed -i s/member1/member2/ "$1"'))
    assert said.out == (
        'Patch: {"spec":{"placement":{"clusterAffinity":{"clusterNames":["member2"]}}}}\n'
        "propagationpolicy.policy.karmada.io/web edited\n"
    )


def test_the_configuration_can_be_kept(run: Commands, config: str, editor: Editor) -> None:
    run("edit", "cm", config, "--save-config", env=editor('sed -i s/blue/pink/ "$1"'))
    shown = json.loads(run("patch", "cm", config, "--type=merge", "-p", "{}", "-o", "json").out)
    kept = json.loads(shown["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    assert kept["data"] == {"colour": "pink"}


def test_editors_that_fail(run: Commands, config: str, kept: Path) -> None:
    assert run.refused("edit", "cm", config, env={"KUBE_EDITOR": "no-such-editor"}) == (
        'error: unable to launch the editor "no-such-editor"\n'
    )
    assert run.refused("edit", "cm", config, env={"KUBE_EDITOR": "", "EDITOR": "false -x"}) == (
        'error: there was a problem with the editor "false -x"\n'
    )
    said = run("edit", "cm", config, env={"KUBE_EDITOR": "sed -i 's/blue/dark blue/'"})
    assert said.out == "configmap/settings edited\n"
    assert list(kept.iterdir()) == []


def test_what_to_edit_must_be_there(run: Commands) -> None:
    assert run.refused("edit", "cm", "none") == 'Error from server (NotFound): configmaps "none" not found\n'
    assert run.refused("edit").startswith("error: You must provide one or more resources by argument or filename.\n")
    assert run.refused("edit", "pods") == "error: edit cancelled, no objects found\n"
    assert run.refused("edit", "cm", "x", "-o", "name") == "error: The flag 'output' must be one of yaml|json\n"


# create --edit


def test_objects_are_edited_before_they_are_created(run: Commands, editor: Editor) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: drafted}\n"
    said = run("create", "-f", "-", "--edit", stdin=text, env=editor("true"))
    assert (said.out, said.err) == ("", "Edit cancelled, no changes made.\n")
    said = run("create", "-f", "-", "--edit", stdin=text, env=editor('sed -i s/drafted/ready/ "$1"'))
    assert said.out == "configmap/ready created\n"


def test_what_was_saved_must_be_text(run: Commands, config: str, editor: Editor, kept: Path) -> None:
    refusal = run.refused("edit", "cm", config, env=editor("printf '\\377' > $1"))
    [copy] = kept.iterdir()
    assert refusal == f'A copy of your changes has been stored to "{copy}"\nerror: what was saved is not UTF-8\n'
