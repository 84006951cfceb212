from __future__ import annotations

import asyncio

import pytest

from karmada.kube.client.discovery import NoMatch, RESTMapper, discover
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvk import GVK, GVR, GroupKind, GroupVersion
from karmada.kube.objects.gvrs import CONFIG_MAPS, DEPLOYMENTS
from tests.support.cases import cases
from tests.support.fake_api import FakeApi, FakeTransport

WIDGETS = GVR("example.io", "v1", "widgets")


@pytest.mark.parametrize("aggregated", [True, False], ids=["aggregated", "legacy"])
async def test_both_styles_of_discovery_give_the_same_catalog(
    fake: FakeApi, api: FakeTransport, aggregated: bool
) -> None:
    fake.aggregated_discovery = aggregated
    catalog = await discover(api)
    deployments = catalog.by_gvr[DEPLOYMENTS]
    assert deployments.gvk == GVK("apps", "v1", "Deployment")
    assert deployments.namespaced
    assert deployments.allows("list", "watch")
    assert deployments.subresources == {"status"}
    assert deployments.short_names == ("deploy",)
    assert not catalog.by_gvk[GVK("", "v1", "Node")].namespaced
    assert GroupVersion("apps", "v1") in catalog.group_versions


@pytest.mark.parametrize("aggregated", [True, False], ids=["aggregated", "legacy"])
async def test_a_group_whose_backend_is_down_does_not_hide_the_others(
    fake: FakeApi, api: FakeTransport, aggregated: bool
) -> None:
    fake.aggregated_discovery = aggregated
    fake.stale = {"apps"}
    catalog = await discover(api)
    assert GroupVersion("apps", "v1") in catalog.failed
    assert DEPLOYMENTS not in catalog.by_gvr
    assert CONFIG_MAPS in catalog.by_gvr


@cases("deploy", "deployments", "deployment", "Deployment", "deployments.apps", "deployments.v1.apps", "deploy.apps")
async def test_a_resource_answers_to_all_its_names(word: str, api: FakeTransport) -> None:
    assert (await RESTMapper(api).named(word)).gvr == DEPLOYMENTS


async def test_a_kind_that_appears_at_run_time_is_found_by_another_discovery(
    fake: FakeApi, api: FakeTransport, clock: FakeClock
) -> None:
    mapper = RESTMapper(api, clock=clock)
    with pytest.raises(NoMatch):
        await mapper.mapping(GVK("example.io", "v1", "Widget"))
    fake.kinds[WIDGETS] = ("Widget", True, ())
    await clock.advance(2)
    assert (await mapper.mapping(GVK("example.io", "v1", "Widget"))).gvr == WIDGETS
    assert (await mapper.mapping(GroupKind("example.io", "Widget"))).gvr == WIDGETS
    assert (await mapper.kind_of(WIDGETS)).gvk.kind == "Widget"


async def test_misses_request_no_more_often_than_the_interval_allows(
    fake: FakeApi, api: FakeTransport, clock: FakeClock
) -> None:
    mapper = RESTMapper(api, clock=clock, min_interval=10)
    await mapper.catalog()
    before = len(fake.calls)
    for _ in range(5):
        with pytest.raises(NoMatch):
            await mapper.named("nothing")
    assert len(fake.calls) == before
    await clock.advance(10)
    answers = await asyncio.gather(*(mapper.named("nothing") for _ in range(5)), return_exceptions=True)
    assert all(isinstance(answer, NoMatch) for answer in answers)
    assert len(fake.calls) == before + 2


async def test_known_kinds_are_answered_without_a_request(fake: FakeApi, api: FakeTransport) -> None:
    mapper = RESTMapper(api)
    assert mapper.known(GVK("", "v1", "Pod")) is None
    await mapper.mapping(GVK("", "v1", "Pod"))
    before = len(fake.calls)
    for _ in range(3):
        await mapper.mapping(GVK("", "v1", "ConfigMap"))
    assert len(fake.calls) == before
    await mapper.refresh()
    assert len(fake.calls) > before
