"""What is public: docs/controllers.md and karmada.sdk list the same names, and examples import nothing else."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from examples.greeter import CONFIG_MAPS, Greeter
from karmada import sdk
from karmada.sdk import Client, Manager
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fake_api import FakeApi, FakeTransport

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/controllers.md").read_text()


def test_the_page_lists_what_can_be_imported() -> None:
    rows = PAGE.partition("| For | Names |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[2])]
    assert sorted(listed) == sorted(sdk.__all__)
    assert [name for name in listed if not hasattr(sdk, name)] == []


def test_the_page_shows_the_example() -> None:
    [source] = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    assert source == (ROOT / "examples/greeter.py").read_text()


@cases("examples/greeter.py", "docs/controllers.md", "docs/scheduling.md")
def test_examples_import_public_names_only(file: str) -> None:
    imported = re.findall(r"^(?:from|import) (karmada[.\w]*) ?(?:import (.*))?$", (ROOT / file).read_text(), re.M)
    assert {module for module, _ in imported} == {"karmada.sdk"}
    assert {name for _, names in imported for name in names.split(", ")} <= set(sdk.__all__)


async def test_the_example_works() -> None:
    api = FakeApi()
    client = Client(FakeTransport(api))
    manager = Manager(client)
    manager.add(Greeter(manager))
    running = asyncio.create_task(manager.run())
    metadata = {"name": "note", "namespace": "default", "labels": {"greet": "world"}}
    await client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    async def greeted() -> bool:
        return (await client.get(CONFIG_MAPS, "note", "default")).get("data") == {"hello": "hello world"}

    await eventually(greeted)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
