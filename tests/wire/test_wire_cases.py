"""Every case of the project's own gets the answers of a kube-apiserver, but for the documented differences."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wire.cases import OWN_CASES, Case, load_cases
from tests.wire.documented import documented_differences
from tests.wire.results import run_case


@pytest.fixture(scope="session")
def wire_certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wire")


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in load_cases(OWN_CASES)])
async def test_the_server_answers_like_a_kube_apiserver(case: Case, wire_certificates: Path) -> None:
    result = await run_case(case, wire_certificates, documented_differences())
    assert not result.differing, result.report()
