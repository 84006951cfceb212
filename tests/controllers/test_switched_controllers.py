from __future__ import annotations

import pytest

from karmada.controllers.all import OPTIONAL
from karmada.controllers.context import is_switched_on


@pytest.mark.parametrize(
    ("flag", "by_default", "on"),
    [
        (["*"], True, True),
        (["*"], False, False),
        (["*", "a"], False, True),
        (["*", "-a"], True, False),
        (["-a", "a"], True, False),
        (["a", "-a"], False, True),
        (["b"], True, False),
        ([], True, False),
    ],
)
def test_the_first_entry_that_names_a_controller_decides(flag: list[str], by_default: bool, on: bool) -> None:
    assert is_switched_on("a", flag, by_default=by_default) is on


def test_what_writes_to_templates_by_itself_is_asked_for_first() -> None:
    assert set(OPTIONAL) == {"hpaScaleTargetMarker", "deploymentReplicasSyncer"}
