"""Which of a workload's pods is read or entered, which of a pod's containers is meant, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from karmada.cli.commands.attach import attach
from karmada.cli.commands.exec import exec_
from karmada.cli.commands.logs import logs
from karmada.cli.targeting import pods
from karmada.cli.targeting.connect import Failure
from karmada.kube.objects.types import Obj
from tests.support.cases import cases


def pod(
    name: str = "p",
    *,
    node: str = "n",
    phase: str = "Running",
    ready: int | None = 0,
    restarts: int = 0,
    created: int = 0,
    deleted: int | None = None,
) -> Obj:
    """Times are seconds after some midnight; `ready` None is not ready."""
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": at(ready)}] if ready is not None else []
    metadata = {"name": name, "creationTimestamp": at(created)}
    if deleted is not None:
        metadata["deletionTimestamp"] = at(deleted)
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [{"name": "c"}]},
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": [{"restartCount": restarts}]},
    }


def at(second: int) -> str:
    return f"2024-01-01T00:00:{second:02d}Z"


BETTER_EITHER_WAY = [
    (pod(), pod(node="", phase="Pending", ready=None)),
    (pod(), pod(phase="Unknown")),
    (pod(phase="Unknown"), pod(phase="Pending")),
    (pod(), pod(ready=None)),
    (pod(ready=1), pod(ready=2)),
    (pod(created=1), pod(created=2)),
]


@pytest.mark.parametrize(("better", "worse"), BETTER_EITHER_WAY)
@pytest.mark.parametrize("order", [pods.best_to_read, pods.best_to_enter])
def test_what_works_longest_comes_first(better: Obj, worse: Obj, order: Any) -> None:
    assert sorted([worse, better], key=order) == [better, worse]


def test_the_one_that_failed_most_reports_most() -> None:
    calm, troubled = pod(restarts=0), pod(restarts=3)
    assert sorted([calm, troubled], key=pods.best_to_read) == [troubled, calm]
    assert sorted([troubled, calm], key=pods.best_to_enter) == [calm, troubled]


def test_one_that_leaves_is_entered_last_of_its_like() -> None:
    staying, late, early = pod("a"), pod("b", deleted=9), pod("c", deleted=1)
    assert sorted([early, late, staying], key=pods.best_to_enter) == [staying, late, early]


def test_completed_pods_have_logs_and_no_shell() -> None:
    done, pending = pod("done", phase="Succeeded", ready=None), pod("pending", phase="Pending", ready=None)
    assert sorted([pending, done], key=pods.best_to_read) == [done, pending]
    assert sorted([done, pod("x")], key=pods.best_to_enter)[0]["metadata"]["name"] == "x"


# containers


def several(annotation: str = "") -> Obj:
    return {
        "metadata": {"name": "p", "annotations": {pods.DEFAULT_CONTAINER: annotation} if annotation else None},
        "spec": {
            "initContainers": [{"name": "prep"}],
            "containers": [{"name": "a"}, {"name": "b"}],
            "ephemeralContainers": [{"name": "debug"}],
        },
    }


def chosen(of: Obj, name: str = "") -> tuple[str, list[str]]:
    refusal: list[str] = []
    return pods.chosen_container(of, name, refusal.append)["name"], refusal


def test_the_container_that_is_meant() -> None:
    choice = 'Defaulted container "a" out of: a, b, debug (ephem), prep (init)'
    assert chosen(several()) == ("a", [choice])
    assert chosen(several("b")) == ("b", [])
    assert chosen(several("gone")) == ("a", [choice])
    assert chosen(several(), "prep") == ("prep", [])
    assert chosen({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "only"}]}}) == ("only", [])
    with pytest.raises(Failure, match="container x not found in pod p"):
        chosen(several(), "x")


@cases(
    ({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": {"matchLabels": {"a": "b"}}}}, "a=b"),
    (
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
        },
        "a",
    ),
    ({"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"b": "2", "a": "1"}}}, "a=1,b=2"),
    ({"apiVersion": "v1", "kind": "ReplicationController", "spec": {"selector": {"a": "1"}}}, "a=1"),
)
def test_a_workload_stands_for_its_pods(obj: Obj, selector: str) -> None:
    assert pods.pod_selector({**obj, "metadata": {"name": "x"}}, "cannot do") == selector


@cases(
    (
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}},
        "error: cannot do *v1.Service: invalid service 's': Service is defined without a selector",
    ),
    (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        "error: cannot do *v1.ConfigMap: selector for *v1.ConfigMap not implemented",
    ),
)
def test_what_has_no_pods(obj: Obj, message: str) -> None:
    with pytest.raises(Failure) as caught:
        pods.pod_selector(obj, "cannot do")
    assert caught.value.message == message


# command lines that need no server to be refused


@cases(
    (logs, ["p"], "must specify a cluster: add --cluster NAME or --all-clusters"),
    (logs, ["p", "-C", "m1", "--all-clusters"], "--all-clusters and --cluster cannot be used together"),
    (logs, ["p", "-C", "m", "--limit-bytes=-1"], "--limit-bytes must be greater than 0"),
    (logs, ["p", "-C", "m", "--tail=-2"], "--tail must be greater than or equal to -1"),
    (logs, ["p", "c", "-C", "m", "-c", "d"], "only one of -c or an inline [CONTAINER] arg is allowed"),
    (logs, ["p", "-C", "m", "--pod-running-timeout=0s"], "--pod-running-timeout must be higher than zero"),
    (exec_, [], "pod, type/name or --filename must be specified"),
    (exec_, ["--", "ls"], "pod, type/name or --filename must be specified"),
    (exec_, ["p"], "you must specify at least one command for the container"),
    (exec_, ["p", "--"], "you must specify at least one command for the container"),
    (exec_, ["p", "-s", "members", "--", "ls"], "must specify a member cluster"),
    (exec_, ["p", "-s", "all", "--", "ls"], "not support operation scope: all"),
    (attach, [], "at least 1 argument is required for attach"),
    (attach, ["a", "b", "c"], "expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw 3: [a b c]"),
)
def test_command_lines_that_make_no_sense(command: Any, words: list[str], message: str) -> None:
    result = CliRunner().invoke(command, words)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"error: {message}\n")


@cases(
    (logs, ["-C", "m"], "POD or TYPE/NAME is a required argument for the logs command"),
    (logs, ["-C", "m", "p", "-l", "a=b"], "only a selector (-l) or a POD name is allowed"),
    (exec_, ["p", "ls"], "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead"),
    (exec_, ["p", "--pod-running-timeout=-1s", "--", "ls"], "--pod-running-timeout must be higher than zero"),
)
def test_usage_errors_point_to_the_help(command: Any, words: list[str], message: str) -> None:
    result = CliRunner().invoke(command, words, prog_name=f"karmadactl {command.name}")
    assert result.exit_code == 1
    *_, refusal, hint = result.stderr.splitlines()
    assert refusal.removeprefix("error: ") == message
    assert hint == f"See 'karmadactl {command.name} -h' for help and examples"
