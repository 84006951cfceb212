"""Templates are read from the server once for all controllers that need the same state within moments."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.controllers.context import GROUPED
from karmada.controllers.templates import Templates, light_of
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from tests.support.control_plane import ControlPlane, running
from tests.support.eventually import eventually

KEY = Key("default", "settings")
REFERENCE = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "settings"}


class Reads:
    """Those that have reached the server."""

    def __init__(self) -> None:
        self.count = 0


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with running(folder, lambda _context: []) as plane:
        await plane.client.create(CONFIG_MAPS, {"metadata": {"name": "settings", "namespace": "default"}})
        await plane.context.client.mapper.catalog()
        yield plane


@pytest.fixture
def templates(plane: ControlPlane) -> Templates:
    return Templates(plane.context.client, plane.context.informers)


@pytest.fixture
async def informer(plane: ControlPlane) -> Informer:
    """That of the detector."""
    found = plane.context.informers.of(CONFIG_MAPS, shape=light_of(GVK("", "v1", "ConfigMap")))
    await found.wait_synced()
    return found


@pytest.fixture
def reads(templates: Templates, monkeypatch: pytest.MonkeyPatch) -> Reads:
    found, get = Reads(), templates._client.get

    async def counted(*arguments: Any, **named: Any) -> Obj:
        found.count += 1
        return await get(*arguments, **named)

    monkeypatch.setattr(templates._client, "get", counted)
    return found


async def changed(plane: ControlPlane, informer: Informer, value: str) -> str:
    """Its version, once the informer has it."""
    written = await plane.client.patch(CONFIG_MAPS, "settings", "default", {"data": {"key": value}})
    version: str = written["metadata"]["resourceVersion"]
    await eventually(lambda: (informer.get(KEY) or {})["metadata"]["resourceVersion"] == version)
    return version


@pytest.mark.usefixtures("informer")
async def test_a_template_that_was_just_read_is_not_requested_again(templates: Templates, reads: Reads) -> None:
    first = await templates.of(REFERENCE)
    assert first is not None
    assert await templates.of(REFERENCE) is first
    assert reads.count == 1


async def test_one_that_has_changed_since_is_requested(
    plane: ControlPlane, templates: Templates, reads: Reads, informer: Informer
) -> None:
    await templates.of(REFERENCE)
    await changed(plane, informer, "new")
    found = await templates.of(REFERENCE)
    assert found is not None
    assert found["data"] == {"key": "new"}
    assert reads.count == 2


@pytest.mark.usefixtures("informer")
async def test_one_is_requested_when_its_binding_knows_of_a_later_state_or_of_another_template(
    templates: Templates, reads: Reads
) -> None:
    await templates.of(REFERENCE)
    await templates.of({**REFERENCE, "resourceVersion": "99999999"})
    assert reads.count == 2
    await templates.of({**REFERENCE, "uid": "another"})
    assert reads.count == 3


async def test_one_is_requested_while_nobody_watches_its_kind(
    templates: Templates, reads: Reads, informer: Informer
) -> None:
    await templates.of(REFERENCE)
    await informer.stop()
    await templates.of(REFERENCE)
    assert reads.count == 2
    informer.start()


@pytest.mark.usefixtures("informer")
async def test_one_is_requested_after_its_status_was_written(templates: Templates, reads: Reads) -> None:
    found = await templates.of(REFERENCE)
    assert found is not None
    with pytest.raises(ApiError):  # a ConfigMap has none: what counts is the attempt
        await templates.write_status(found)
    await templates.of(REFERENCE)
    assert reads.count == 2


async def test_one_is_requested_when_the_server_may_be_another_one(
    templates: Templates, reads: Reads, informer: Informer
) -> None:
    await templates.of(REFERENCE)
    informer.forget_history()
    await templates.of(REFERENCE)
    assert reads.count == 2


async def read_all(plane: ControlPlane, templates: Templates, informer: Informer, count: int, text: str) -> list[Obj]:
    """References to new templates, each of which was read once."""
    names = [f"one-{number:03}" for number in range(count)]
    for name in names:
        obj = {"metadata": {"name": name, "namespace": "default"}, "data": {"text": text}}
        await plane.client.create(CONFIG_MAPS, obj)
    await eventually(lambda: all(informer.get(Key("default", name)) for name in names))
    references: list[Obj] = [{**REFERENCE, "name": name} for name in names]
    for reference in references:
        await templates.of(reference)
    return references


async def test_all_that_are_on_their_way_at_once_are_requested_once(
    plane: ControlPlane, templates: Templates, reads: Reads, informer: Informer
) -> None:
    count = 4 * GROUPED
    for reference in await read_all(plane, templates, informer, count, "small"):
        await templates.of(reference)
    assert reads.count == count


async def test_few_large_ones_are_kept(
    plane: ControlPlane, templates: Templates, reads: Reads, informer: Informer
) -> None:
    references = await read_all(plane, templates, informer, 10, "x" * 800_000)
    await templates.of(references[-1])
    assert reads.count == 10
    await templates.of(references[0])
    assert reads.count == 11
