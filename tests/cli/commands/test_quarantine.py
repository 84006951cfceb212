"""`karmadactl quarantine`: what is left alone is listed and released; `why` names it, too."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from karmada.api.quarantine import LABEL, NAMESPACE, to_map
from karmada.cli.karmadactl import main
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.runtime.quarantine import WHOLE, Entry
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running
from tests.support.objects import kube_object

WEB = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "web"}}
ENTRIES = [
    Entry(controller="detector", key=WHOLE, at=1e9, seconds=30.0, stack="spin (rules.py:1) < reconcile (rules.py:9)"),
    Entry(controller="detector", key="default/v1/ConfigMap/web", at=1e9, seconds=31.5, stack="", object=WEB),
]


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with running(folder / "plane", clock=RealClock()) as plane:
        yield plane


async def run(plane: ControlPlane, *words: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, main, [*words, "--kubeconfig", str(plane.server.kubeconfig)])


async def hold(plane: ControlPlane, *entries: Entry) -> None:
    for entry in entries:
        await plane.client.create(CONFIG_MAPS, to_map(entry))


async def keys(plane: ControlPlane) -> set[str]:
    found = await plane.client.list_all(CONFIG_MAPS, NAMESPACE, label_selector=LABEL)
    return {one["data"]["key"] for one in found.items}


async def test_it_is_listed_with_its_time_and_place(plane: ControlPlane) -> None:
    assert (await run(plane, "quarantine", "list")).stdout == "nothing is in quarantine\n"
    await hold(plane, *ENTRIES)
    lines = (await run(plane, "quarantine", "list")).stdout.splitlines()
    assert [re.split(r"\s{2,}", line.rstrip()) for line in lines] == [
        ["CONTROLLER", "KEY", "SINCE", "HUNG FOR", "IN"],
        ["detector", "*", "2001-09-09T01:46:40Z", "30s", "spin (rules.py:1)"],
        ["detector", "default/v1/ConfigMap/web", "2001-09-09T01:46:40Z", "31.5s"],
    ]


async def test_a_key_or_everything_is_released(plane: ControlPlane) -> None:
    await hold(plane, *ENTRIES)
    result = await run(plane, "quarantine", "release", "detector", "default/v1/ConfigMap/web")
    assert (result.exit_code, result.stdout) == (0, "default/v1/ConfigMap/web of detector released\n")
    assert await keys(plane) == {WHOLE}
    result = await run(plane, "quarantine", "release", "detector", "default/v1/ConfigMap/web")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: default/v1/ConfigMap/web of detector is not in quarantine\n",
    )
    assert (await run(plane, "quarantine", "release", "--all")).stdout == "* of detector released\n"
    assert await keys(plane) == set()


@pytest.mark.parametrize("words", [(), ("detector",), ("detector", "a", "b"), ("--all", "detector", "a")])
async def test_a_release_names_a_controller_and_a_key_or_all(words: tuple[str, ...], plane: ControlPlane) -> None:
    await hold(plane, *ENTRIES)
    result = await run(plane, "quarantine", "release", *words)
    assert result.exit_code == 1
    assert "a controller and a key" in result.stderr
    assert len(await keys(plane)) == len(ENTRIES)


@cases(
    ("web", ENTRIES[1], "detector leaves default/v1/ConfigMap/web alone since 2001-09-09T01:46:40Z"),
    ("web", ENTRIES[0], "detector leaves all keys alone"),
    ("other", ENTRIES[1], "no policy selects ConfigMap default/other"),
)
async def test_why_names_what_is_left_alone(name: str, entry: Entry, said: str, plane: ControlPlane) -> None:
    await plane.client.create(CONFIG_MAPS, kube_object("v1", "ConfigMap", name, "default"))
    await hold(plane, entry)
    result = await run(plane, "why", f"configmap/{name}", "-n", "default")
    assert said in result.stderr
