"""Objects with one large field, of some kinds: no step of theirs holds up the loop, or costs out of proportion.

All kinds and fields take some hours: `make hostile`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from karmada.kube.objects import doc
from tests.hostile.costs import TURN_SECONDS, Costs
from tests.hostile.growing import growths
from tests.hostile.plane import hostile_plane
from tests.hostile.turns import MeteredLoop

SIZE = 500_000
_UNDOUBTED = 4
"""So many times the limit: what `make hostile` finds at the limit depends on the machine's caches, too."""
FIELDS = (
    "ConfigMap.data",
    "ConfigMap.metadata.labels",
    "Deployment.spec.template.spec.containers",
    "OverridePolicy.spec.overrideRules",
    "PropagationPolicy.spec.resourceSelectors",
    "PropagationPolicy.spec.placement.clusterAffinities",
    "Role.rules",
    "Widget.spec.numbers",
)


@pytest.fixture(autouse=True)
def _no_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    """It encodes every shared object again, on the loop."""
    monkeypatch.setattr(doc, "_detecting", False)


def test_a_large_field_costs_others_little(folder: Path) -> None:
    found: list[str] = []
    stored: list[str] = []

    async def check() -> None:
        async with hostile_plane(folder) as plane:
            costs = Costs(plane, SIZE, _UNDOUBTED * TURN_SECONDS)
            for resource in plane.resources():
                for growth in growths(resource):
                    if str(growth) in FIELDS:
                        outcome = await costs.of(growth)
                        found.extend(map(str, outcome.findings))
                        stored.extend([str(growth)] * bool(outcome.accepted))

    with asyncio.Runner(loop_factory=MeteredLoop) as runner:
        runner.run(check())
    assert found == []
    assert sorted(stored) == sorted(FIELDS)
