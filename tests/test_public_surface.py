"""What docs/controllers.md lists as public is there, and its example uses nothing else."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs/controllers.md").read_text()
PUBLIC = {
    module: re.findall(r"`(\w+)`", names)
    for module, names in re.findall(r"^\| `(karmada[.\w]+)` \| (.*) \|$", PAGE, re.M)
}


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_module_has_its_names(module: str) -> None:
    assert [name for name in PUBLIC[module] if not hasattr(import_module(module), name)] == []


def test_the_example_uses_public_names_only() -> None:
    imported = re.findall(r"^from (karmada[.\w]+) import (.*)$", PAGE, re.M)
    assert imported
    assert [(module, names) for module, names in imported if not set(names.split(", ")) <= set(PUBLIC[module])] == []
