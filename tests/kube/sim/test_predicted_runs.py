"""Which containers run until they are stopped."""

from __future__ import annotations

from karmada.kube.sim.kubelet.predicted_runs import reads_stdin, runs_until_stopped
from tests.support.cases import cases


@cases(
    ({"stdin": True, "args": ["sh"]}, True),
    ({"stdin": True, "command": ["/bin/bash"]}, True),
    ({"stdin": True}, True),
    ({"args": ["sh"]}, False),
    ({"stdin": True, "args": ["sh", "-c", "exit 3"]}, False),
    ({"stdin": True, "args": ["echo", "hi"]}, False),
)
def test_a_shell_with_a_stdin_waits_for_somebody(container: dict[str, object], waits: bool) -> None:
    assert reads_stdin(container) == waits
    assert runs_until_stopped(container) == waits


@cases(
    ({"image": "registry.k8s.io/pause:3.10"}, True),
    ({"image": "registry.k8s.io/e2e-test-images/agnhost:2.53"}, True),
    ({"image": "agnhost", "args": ["pause"]}, True),
    ({"image": "agnhost", "command": ["/agnhost", "netexec"], "args": ["--http-port=80"]}, True),
    ({"image": "agnhost", "args": ["mounttest", "--fs_type=/x"]}, False),
    ({"image": "busybox"}, False),
)
def test_pause_and_servers_run_until_they_are_stopped(container: dict[str, object], forever: bool) -> None:
    assert runs_until_stopped(container) == forever
