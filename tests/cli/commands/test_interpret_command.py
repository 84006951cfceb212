"""interpret with files: nothing here needs a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from karmada.cli.changing.editor import Rejected
from karmada.cli.commands.interpret import interpret
from karmada.cli.commands.interpret_edit import from_lua, to_lua
from tests.support.cases import cases
from tests.support.objects import kube_object

SCRIPTS = {
    "retention": """\
function Retain(desiredObj, observedObj)
  desiredObj.spec.paused = observedObj.spec.paused
  return desiredObj
end
""",
    "replicaResource": """\
local kube = require("kube")
function GetReplicas(obj)
  replica = obj.spec.replicas
  return replica, kube.accuratePodRequirements(obj.spec.template)
end
""",
    "componentResource": "function GetComponents(obj) return {{name='web', replicas=obj.spec.replicas}} end\n",
    "replicaRevision": """\
function ReviseReplica(obj, n)
  print('revising', n)
  obj.spec.replicas = n
  return obj
end
""",
    "statusReflection": "function ReflectStatus(obj) return obj.status end\n",
    "statusAggregation": """\
function AggregateStatus(obj, items)
  obj.status = {readyReplicas=0}
  for i = 1, #items do
    obj.status.readyReplicas = obj.status.readyReplicas + items[i].status.readyReplicas
  end
  return obj
end
""",
    "healthInterpretation": "function InterpretHealth(obj) return obj.status.readyReplicas == obj.spec.replicas end\n",
    "dependencyInterpretation": """\
function GetDependencies(obj)
  local account = obj.spec.template.spec.serviceAccountName
  return {{apiVersion='v1', kind='ServiceAccount', namespace=obj.metadata.namespace, name=account}}
end
""",
}
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  paused: false
  template:
    spec:
      serviceAccountName: robot
      nodeSelector: {foo: bar}
      containers: [{name: web, resources: {limits: {cpu: 100m}}}]
status: {readyReplicas: 2}
"""
ITEMS = "clusterName: m1\nstatus: {readyReplicas: 2}\n---\nclusterName: m2\nstatus: {readyReplicas: 4}\n"


RETAIN = ["-f", "all.yaml", "--operation", "Retain"]
HEALTH = ["-f", "all.yaml", "--operation", "InterpretHealth"]


def customization(**scripts: str) -> dict[str, Any]:
    return kube_object("config.karmada.io/v1alpha1", "ResourceInterpreterCustomization", "example") | {
        "spec": {
            "target": {"apiVersion": "apps/v1", "kind": "Deployment"},
            "customizations": {rule: {"luaScript": script} for rule, script in scripts.items()},
        },
    }


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files to name on the command line; whoever looks for a kubeconfig finds none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(customization(**SCRIPTS)))
    (tmp_path / "web.yaml").write_text(WEB)
    (tmp_path / "seen.yaml").write_text(WEB.replace("paused: false", "paused: true"))
    (tmp_path / "items.yaml").write_text(ITEMS)
    return tmp_path


def run(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(interpret, words, input=stdin)


# check


def test_check_reports_every_rule(folder: Path) -> None:
    scripts = {"retention": SCRIPTS["retention"], "replicaResource": "function GetReplicas("}
    (folder / "some.yaml").write_text(yaml.safe_dump(customization(**scripts)))
    result = run("-f", "some.yaml", "--check")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "-----------------------------------",
        "SOURCE: some.yaml",
        "TARGET: apps/v1 Deployment",
        "RULERS:",
        "    Retain:               PASS",
        "    InterpretReplica:     ERROR: <string>:1: <name> or '...' expected near <eof>",
        "    InterpretComponent:   UNSET",
        "    ReviseReplica:        UNSET",
        "    InterpretStatus:      UNSET",
        "    AggregateStatus:      UNSET",
        "    InterpretHealth:      UNSET",
        "    InterpretDependency:  UNSET",
    ]
    assert result.stderr == ""


def test_check_goes_on_after_what_is_no_customization() -> None:
    result = run("-f", "web.yaml", "-f", "all.yaml", "--check")
    assert result.exit_code == 1
    assert "ERROR: not a ResourceInterpreterCustomization" in result.stdout
    assert result.stdout.count("PASS") == 8


def test_check_wants_a_target(folder: Path) -> None:
    obj = customization(**SCRIPTS)
    del obj["spec"]["target"]["kind"]
    (folder / "all.yaml").write_text(yaml.safe_dump(obj))
    result = run("-f", "all.yaml", "--check")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, "ERROR: target.kind is not set")


def test_check_runs_nothing(folder: Path) -> None:
    (folder / "all.yaml").write_text(yaml.safe_dump(customization(retention="while true do end")))
    assert run("-f", "all.yaml", "--check").exit_code == 0


# execute


def results(*words: str) -> dict[str, Any]:
    done = run("-f", "all.yaml", *words)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    documents = [part.split("\n", 1) for part in done.stdout.split("---\n# ")[1:]]
    assert [head.split("/")[1].split("]")[0] for head, _ in documents] == [str(len(documents))] * len(documents)
    return {head.split("] ")[1].rstrip(":"): yaml.safe_load(text) for head, text in documents}


@cases(
    ("interpretreplica", ["--desired-file", "web.yaml"],
     {"replica": 3, "requires": {"nodeClaim": {"nodeSelector": {"foo": "bar"}},
                                 "resourceRequest": {"cpu": "100m"}}}),
    ("InterpretComponent", ["--observed-file", "web.yaml"], {"components": [{"name": "web", "replicas": 3}]}),
    ("InterpretStatus", ["--observed-file", "web.yaml"], {"status": {"readyReplicas": 2}}),
    ("InterpretHealth", ["--observed-file", "web.yaml"], {"healthy": False}),
    ("InterpretDependency", ["--desired-file", "web.yaml"],
     {"dependencies": [{"apiVersion": "v1", "kind": "ServiceAccount", "namespace": "shop", "name": "robot"}]}),
)  # fmt: skip
def test_execute(operation: str, words: list[str], expected: dict[str, Any]) -> None:
    assert results("--operation", operation, *words) == expected


def test_execute_whole_objects() -> None:
    retained = results("--operation", "Retain", "--desired-file", "web.yaml", "--observed-file", "seen.yaml")[
        "retained"
    ]
    assert retained["spec"]["paused"] is True
    aggregated = results("--operation", "AggregateStatus", "--desired-file", "web.yaml", "--status-file", "items.yaml")
    assert aggregated["aggregatedStatus"]["status"] == {"readyReplicas": 6}


def test_what_scripts_print_is_distinguished_from_results() -> None:
    result = run(
        "-f", "all.yaml", "--operation", "ReviseReplica", "--desired-file", "web.yaml", "--desired-replica", "7"
    )
    assert result.stderr == "revising\t7\n"
    assert result.stdout.startswith("---\n# [1/1] revised:\napiVersion: apps/v1\n")
    assert "replicas: 7" in result.stdout


def test_objects_may_come_from_standard_input() -> None:
    result = CliRunner().invoke(
        interpret, ["-f", "all.yaml", "--operation", "InterpretHealth", "--observed-file", "-"], input=WEB
    )
    assert result.stdout == "---\n# [1/1] healthy:\nfalse\n"


def test_results_in_json() -> None:
    result = run("-f", "all.yaml", "--operation", "InterpretStatus", "--observed-file", "web.yaml", "-o", "json")
    assert result.stdout == '---\n# [1/1] status:\n{\n    "readyReplicas": 2\n}\n'


@cases("function GetReplicas(o) error('no') end", "function GetReplicas(o) while true do end end")
def test_a_rule_that_fails_is_reported(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karmada.interpreter.lua.vm.SECONDS", 0.2)
    (folder / "all.yaml").write_text(yaml.safe_dump(customization(replicaResource=script)))
    result = run("-f", "all.yaml", "--operation", "InterpretReplica", "--desired-file", "web.yaml")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("Execute InterpretReplica error: ")


def test_a_rule_that_is_not_there_is_reported(folder: Path) -> None:
    (folder / "all.yaml").write_text(yaml.safe_dump(customization(retention=SCRIPTS["retention"])))
    result = run("-f", "all.yaml", "--operation", "InterpretReplica", "--desired-file", "web.yaml")
    assert (result.exit_code, result.stderr) == (0, "Execute InterpretReplica error: rule is not enabled\n")


@cases(
    (["-f", "all.yaml"], "error: operation is not set for executing"),
    (["-f", "all.yaml", "--operation", "Sing"], "error: operation Sing is not supported. Use one of: Retain, "),
    (["-f", "all.yaml", "--check", "--edit"], "error: you can only set one of --check and --edit options"),
    ([], "error: You must provide one or more resources by argument or filename."),
    (["-f", "none.yaml", "--check"], 'error: the path "none.yaml" does not exist'),
    ([*RETAIN, "--desired-file", "web.yaml"], "error: both --desired-file and --observed-file"),
    (HEALTH, "error: one of --desired-file and --observed-file must be set"),
    ([*HEALTH, "--desired-file", "web.yaml", "--observed-file", "web.yaml"], "error: one of --desired-file and"),
    ([*HEALTH, "-f", "web.yaml", "--observed-file", "web.yaml"], "error: web.yaml: not a Resource"),
    ([*HEALTH, "--observed-file", "two.yaml"], "error: two.yaml must hold one object"),
    (["name", "--check"], "error: "),
)  # fmt: skip
def test_command_lines_that_cannot_be_followed(words: list[str], refusal: str, folder: Path) -> None:
    (folder / "two.yaml").write_text(f"{WEB}---{WEB}")
    result = run(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(refusal)


# edit


@pytest.fixture
def editor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An editor that runs sed with the scripts given, one after another, and keeps what it was shown."""

    def use(*scripts: str) -> Path:
        for number, script in enumerate(scripts, start=1):
            (folder / f"script{number}").write_text(script)
        program = folder / "editor.sh"
        program.write_text(
            f"#!/bin/sh\nn=$(($(cat {folder}/count 2>/dev/null) + 1))\necho $n > {folder}/count\n"
            f'cp "$1" {folder}/shown$n\n[ -f {folder}/script$n ] && sed -i -f {folder}/script$n "$1"\nexit 0\n'
        )
        program.chmod(0o755)
        monkeypatch.setenv("KUBE_EDITOR", str(program))
        return folder

    return use


def test_edit_writes_the_file_anew(folder: Path, editor: Any) -> None:
    editor("s/obj.spec.replicas = n/obj.spec.replicas = n + 1/")
    result = run("-f", "all.yaml", "--edit")
    assert result.stdout == "resourceinterpretercustomization.config.karmada.io/example edited\n", result.stderr
    changed = yaml.safe_load((folder / "all.yaml").read_text())
    expected = SCRIPTS | {"replicaRevision": SCRIPTS["replicaRevision"].replace("= n\n", "= n + 1\n")}
    assert changed == customization(**expected)


def test_edit_without_a_change_does_nothing(folder: Path, editor: Any) -> None:
    editor()
    before = (folder / "all.yaml").read_text()
    result = run("-f", "all.yaml", "--edit")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Edit cancelled, no changes made.\n")
    assert (folder / "all.yaml").read_text() == before


def test_edit_opens_again_what_makes_no_sense(folder: Path, editor: Any) -> None:
    editor(
        "s/^function GetReplicas(obj)/function GetReplicas(/", "s/^function GetReplicas(/function GetReplicas(other)/"
    )
    result = run("-f", "all.yaml", "--edit")
    assert result.exit_code == 0, result.stderr
    assert (folder / "shown2").read_text().startswith("-- error: InterpretReplica: <string>:")
    assert "GetReplicas(other)" in (folder / "all.yaml").read_text()


def test_edit_begins_a_customization_in_an_empty_file(folder: Path, editor: Any) -> None:
    (folder / "new.yaml").write_text("")
    editor(
        "s/^---@name:/---@name: mine/\ns/^---@apiVersion:/---@apiVersion: v1/\ns/^---@kind:/---@kind: Pod/\n"
        "s/^---@rule: InterpretHealth/&\\nfunction InterpretHealth(o) return true end/"
    )
    assert run("-f", "new.yaml", "--edit").exit_code == 0
    assert yaml.safe_load((folder / "new.yaml").read_text()) == {
        "apiVersion": "config.karmada.io/v1alpha1",
        "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": "mine"},
        "spec": {
            "target": {"apiVersion": "v1", "kind": "Pod"},
            "customizations": {"healthInterpretation": {"luaScript": "function InterpretHealth(o) return true end\n"}},
        },
    }


def test_edit_of_standard_input_goes_to_standard_output(folder: Path, editor: Any) -> None:
    editor("s/obj.spec.replicas = n/obj.spec.replicas = 9/")
    result = run("-f", "-", "--edit", stdin=(folder / "all.yaml").read_text())
    assert (
        "obj.spec.replicas = 9"
        in yaml.safe_load(result.stdout)["spec"]["customizations"]["replicaRevision"]["luaScript"]
    )


def test_edit_explains_on_request(folder: Path, editor: Any) -> None:
    editor("s/obj.spec.replicas = n/obj.spec.replicas = 9/")
    run("-f", "all.yaml", "--edit", "--show-doc")
    shown = (folder / "shown1").read_text()
    assert shown.count("-- function ") == 8
    assert "-- function" not in (folder / "all.yaml").read_text()


def test_edit_takes_one_at_a_time(folder: Path) -> None:
    (folder / "two.yaml").write_text((folder / "all.yaml").read_text() + "---\n" + (folder / "all.yaml").read_text())
    assert run("-f", "two.yaml", "--edit").stderr == "error: only one customization can be edited, and there are 2\n"


@cases(True, False)
def test_a_customization_as_lua_and_back_is_the_same(docs: bool) -> None:
    obj = customization(**SCRIPTS)
    assert from_lua(to_lua(obj, docs=docs), obj) == obj


@cases(
    ("x = 1\n---@rule: Retain", "line 1: text before the first ---@rule line: x = 1"),
    ("---@rule: Sing", "line 1: there is no rule Sing; use one of: Retain"),
    ("---@rule: Retain\n---@rule: Retain", "line 2: rule Retain is set twice"),
    ("---@name: a\n---@kind: b", "---@apiVersion is not set"),
)
def test_lua_that_is_no_customization(text: str, refusal: str) -> None:
    with pytest.raises(Rejected) as error:
        from_lua(text, {})
    assert str(error.value).startswith(refusal)


def test_without_a_customization_an_operation_runs_as_it_is_built_in(tmp_path: Path) -> None:
    seen = tmp_path / "seen.yaml"
    seen.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": "default"},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
                "status": {"phase": "Succeeded"},
            }
        )
    )
    result = CliRunner().invoke(interpret, ["--operation", "InterpretHealth", "--observed-file", str(seen)])
    assert (result.exit_code, result.output) == (0, "---\n# [1/1] healthy:\ntrue\n")
