"""How commands of containers would run."""

from __future__ import annotations

import math

import pytest

from karmada.kube.sim.kubelet.predicted_runs import FOREVER, predicted_run, reads_stdin


@pytest.mark.parametrize(
    ("container", "waits"),
    [
        ({"stdin": True, "args": ["sh"]}, True),
        ({"stdin": True, "command": ["/bin/bash"]}, True),
        ({"stdin": True}, True),
        ({"args": ["sh"]}, False),
        ({"stdin": True, "args": ["sh", "-c", "exit 3"]}, False),
        ({"stdin": True, "args": ["echo", "hi"]}, False),
    ],
)
def test_a_shell_with_a_stdin_waits_for_somebody(container: dict[str, object], waits: bool) -> None:
    assert reads_stdin(container) == waits
    predicted = predicted_run(container)
    assert (predicted is not None and predicted.seconds == math.inf) == waits


@pytest.mark.parametrize(
    ("script", "run"),
    [
        ("sleep 5", (5, 0)),
        ("sleep 1m; exit 3", (60, 3)),
        ("echo hi && exit 3", (0, 3)),
        ("false || exit 2", (0, 2)),
        ("false && exit 2; sleep 1", (1, 0)),
        ("true || exit 2; sleep 1; false", (1, 1)),
        ("echo 'a; exit 1'; sleep 2", (2, 0)),
        ("./work; exit 4", (0, 4)),
        ("sleep 1; ./work", (1, 0)),
        ("if [ -f /tmp/x ]; then exit 1; fi; exit 0", None),
        ("[ -f /tmp/x ] || exit 1", None),
        ("test -f /tmp/x && exit 1", None),
        ("./work || exit 1", None),
        ("for i in 1 2; do sleep 1; done", None),
        ("while true; do sleep 1; done", None),
        ("exit $(cat /tmp/code)", None),
        ("exit $?", None),
        ("sleep $SECONDS; exit 1", (0, 1)),
        ("./server & sleep 5; exit 1", None),
        ("echo hi", None),
        ("echo out 2>&1; exit 7", (0, 7)),
    ],
)
def test_a_script_is_predicted_where_nothing_unknown_decides(script: str, run: tuple[float, int] | None) -> None:
    assert predicted_run({"image": "busybox", "command": ["sh", "-c", script]}) == run


@pytest.mark.parametrize(
    ("command", "run"),
    [(["sleep", "5"], (5, 0)), (["/bin/false"], (0, 1)), (["true"], (0, 0)), (["echo", "a; exit 1"], None)],
)
def test_a_program_is_no_script(command: list[str], run: tuple[float, int] | None) -> None:
    assert predicted_run({"image": "busybox", "command": command}) == run


@pytest.mark.parametrize(
    ("container", "forever"),
    [
        ({"image": "registry.k8s.io/pause:3.10"}, True),
        ({"image": "registry.k8s.io/e2e-test-images/agnhost:2.53"}, True),
        ({"image": "agnhost", "args": ["pause"]}, True),
        ({"image": "agnhost", "command": ["/agnhost", "netexec"], "args": ["--http-port=80"]}, True),
        ({"image": "agnhost", "args": ["mounttest", "--fs_type=/x"]}, False),
        ({"image": "busybox"}, False),
    ],
)
def test_pause_and_servers_run_until_they_are_stopped(container: dict[str, object], forever: bool) -> None:
    assert (predicted_run(container) == FOREVER) == forever
