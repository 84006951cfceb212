"""What hung a process is a ConfigMap of the control plane, an event and a condition, for all replicas."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from karmada.api.quarantine import CONDITION, LABEL, NAMESPACE, from_map, key_of_map, to_map
from karmada.api.work import ResourceBinding
from karmada.components.quarantine_keeper import QuarantineKeeper
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.quarantine import QUARANTINE, Entry
from tests.support.control_plane import ControlPlane, running
from tests.support.eventually import eventually
from tests.support.objects import kube_object

OTHER = Entry(controller="binding-controller", key="default/other", seconds=30.0, stack="spin (rules.py:1)")


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    yield
    for entry in QUARANTINE.entries():
        QUARANTINE.release(entry)


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with running(folder / "plane", lambda context: [QuarantineKeeper(context)]) as plane:
        yield plane


async def maps(plane: ControlPlane) -> list[Obj]:
    return (await plane.client.list_all(CONFIG_MAPS, NAMESPACE, label_selector=LABEL)).items


async def no_maps(plane: ControlPlane) -> bool:
    return not await maps(plane)


async def binding(plane: ControlPlane) -> Obj:
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}
    obj = kube_object(
        ResourceBinding.gvk.api_version, "ResourceBinding", "web-deployment", "default", spec={"resource": resource}
    )
    return await plane.client.create(ResourceBinding.gvr, obj)


async def condition(plane: ControlPlane) -> Obj | None:
    found = await plane.client.get(ResourceBinding.gvr, "web-deployment", "default")
    return meta.get_condition((found.get("status") or {}).get("conditions"), CONDITION)


async def held(plane: ControlPlane) -> Entry:
    """An entry of a binding, shown as a ConfigMap."""
    made = await binding(plane)
    reference = {name: made["metadata"][name] for name in ("namespace", "name", "uid")}
    about = {"apiVersion": made["apiVersion"], "kind": made["kind"], "metadata": reference}
    entry = msgspec.structs.replace(OTHER, key="default/web-deployment", object=about)
    QUARANTINE.add(entry)
    await eventually(lambda: [one.published for one in QUARANTINE.entries()] == [True])
    return QUARANTINE.entries()[0]


async def test_what_hung_is_a_config_map_an_event_and_a_condition(plane: ControlPlane) -> None:
    entry = await held(plane)
    (shown,) = await maps(plane)
    assert shown["data"]["controller"] == "binding-controller"
    assert from_map(shown) == msgspec.structs.replace(entry, published=False)
    marked = await condition(plane)
    assert marked is not None
    assert (marked["status"], marked["reason"]) == ("True", "EventLoopHung")
    ((kind, reason, message),) = await plane.events("web-deployment")
    assert (kind, reason) == ("Warning", "Quarantined")
    assert "karmadactl quarantine release binding-controller 'default/web-deployment'" in message


async def test_a_release_removes_all_of_it(plane: ControlPlane) -> None:
    QUARANTINE.release(await held(plane))
    await eventually(lambda: no_maps(plane))
    assert await condition(plane) is None
    assert [reason for _, reason, _ in await plane.events("web-deployment")] == [
        "Quarantined",
        "ReleasedFromQuarantine",
    ]


async def test_who_deletes_the_config_map_releases_the_key(plane: ControlPlane) -> None:
    key = key_of_map(await held(plane))
    await plane.client.delete(CONFIG_MAPS, key.name, key.namespace)
    await eventually(lambda: not QUARANTINE.entries())

    async def unmarked() -> bool:
        return await condition(plane) is None

    await eventually(unmarked)


async def test_what_another_replica_shows_is_held_here_too(plane: ControlPlane) -> None:
    await plane.client.create(CONFIG_MAPS, to_map(OTHER))
    await eventually(lambda: [one.name for one in QUARANTINE.entries()] == [OTHER.name])
    assert QUARANTINE.entries()[0].published
    assert await plane.events(key_of_map(OTHER).name, NAMESPACE) == [], "the other one has emitted it"


async def test_what_was_shown_and_deleted_before_the_start_is_released(folder: Path) -> None:
    QUARANTINE.add(msgspec.structs.replace(OTHER, published=True))
    async with running(folder / "plane", lambda context: [QuarantineKeeper(context)]):
        await eventually(lambda: not QUARANTINE.entries())


@pytest.mark.parametrize("data", [None, {"entry": "{"}, {"entry": "{}"}, to_map(OTHER)["data"]])
async def test_a_config_map_of_somebody_else_holds_nothing(data: Obj | None, plane: ControlPlane) -> None:
    foreign = kube_object("v1", "ConfigMap", "quarantine-mine", NAMESPACE, data=data)
    foreign["metadata"]["labels"] = {LABEL: "true"}
    assert from_map(foreign) is None
    await plane.client.create(CONFIG_MAPS, foreign)
    await plane.client.create(CONFIG_MAPS, to_map(OTHER))
    await eventually(lambda: [one.name for one in QUARANTINE.entries()] == [OTHER.name])
