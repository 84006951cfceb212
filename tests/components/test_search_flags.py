"""Which parts of search the flags of karmada and karmada-search switch on."""

from __future__ import annotations

import pytest

from karmada.components import karmada, search
from karmada.components.search_flags import search_options_from
from karmada.search.service import Options


@pytest.mark.parametrize("program", [karmada.main, search.main], ids=["karmada", "karmada-search"])
@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ([], Options()),
        (["--disable-search"], Options(search=False)),
        (["--disable-proxy=true"], Options(proxy=False)),
        (["--disable-search", "--disable-proxy"], None),
        (["--member-authorization=false"], Options(member_authorization=False)),
        (["--allow-insecure-members"], Options(allow_insecure=True)),
    ],
)
def test_flags_switch_parts_of_search_off(program: object, flags: list[str], options: Options | None) -> None:
    given = program.make_context("program", list(flags)).params  # type: ignore[attr-defined]
    assert search_options_from(given) == options
