"""Which containers go on until somebody has come to their stdin and gone."""

from __future__ import annotations

import math

import pytest

from karmada.kube.sim.kubelet.courses import course_of, talks


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
    assert talks(container) == waits
    course = course_of(container)
    assert (course is not None and course.seconds == math.inf) == waits
