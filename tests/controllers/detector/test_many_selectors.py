"""A policy of very many selectors: each is read once for a version of it, and each pair is compared once, in slices."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from karmada.api import matching
from karmada.controllers.detector.claims import POLICIES
from karmada.controllers.detector.policies import Policies, ReadSelectors, Waiting
from karmada.controllers.detector.policy import requeue_waiting
from karmada.controllers.templates import Ref
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.runtime import time_slice
from tests.support.counting import counted_turns
from tests.support.propagation import config_map, policy, selecting

CM = GVK("", "v1", "ConfigMap")


class Detector:
    """What `requeue_waiting` needs of the detector, with all templates waiting."""

    def __init__(self, templates: int) -> None:
        self.policies = Policies.__new__(Policies)
        self.policies.selectors = ReadSelectors(())
        self.waiting, self.kinds = Waiting(), self
        for number in range(templates):
            self.waiting.add(Ref(CM, "default", f"c{number}"))

    def known(self, ref: Ref) -> Obj:
        return config_map(ref.name)


def labelled(selectors: int) -> Obj:
    """More than any cache for selectors in general would hold."""
    return policy(
        "p", *(selecting("ConfigMap", labelSelector={"matchLabels": {f"k{n}": "v"}}) for n in range(selectors))
    )


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counts: Counter[str] = Counter()

    def counting(holder: Any, name: str) -> None:
        original = getattr(holder, name)

        def count(*arguments: Any) -> Any:
            counts[name] += 1
            return original(*arguments)

        monkeypatch.setattr(holder, name, count)

    counting(matching, "labels_from")
    counting(matching.ResourceSelector, "priority")
    return counts


@pytest.mark.parametrize(("selectors", "templates"), [(1500, 4), (1500, 8), (3000, 4)])
async def test_selectors_are_read_once_and_compared_with_each_template_once(
    selectors: int, templates: int, counted: Counter[str]
) -> None:
    detector: Any = Detector(templates)
    given = labelled(selectors)
    await requeue_waiting(detector, POLICIES, given)
    assert counted == {"labels_from": selectors, "priority": selectors * templates}
    assert not detector.policies.selects(given, config_map("new"))
    assert counted["labels_from"] == selectors


async def test_the_walk_over_selectors_and_templates_is_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(10**9))
    monkeypatch.setattr(time_slice, "perf_counter", lambda: next(now) * time_slice.SLICE_SECONDS / 10)
    detector: Any = Detector(10)
    with counted_turns() as turns:
        await requeue_waiting(detector, POLICIES, labelled(100))
    assert turns.count >= 80
