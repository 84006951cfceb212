"""Samples by package and by function."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measuring import Failed
from benchmarks.profiling import looking_at, package_of, profile_of, profiled, read_folded
from tests.benchmarks.measurements import Example
from tests.support.cases import cases

FOLDED = """\
run (/usr/lib/python3.11/asyncio/runners.py);reconcile (/repo/src/karmada/controllers/binding/controller.py);write (/repo/src/karmada/kube/server/writes.py) 30
run (/usr/lib/python3.11/asyncio/runners.py);reconcile (/repo/src/karmada/controllers/binding/controller.py) 10
run (/usr/lib/python3.11/asyncio/runners.py);write (/repo/src/karmada/kube/server/writes.py);write (/repo/src/karmada/kube/server/writes.py) 60
"""  # noqa: E501


@cases(
    ("/repo/src/karmada/kube/server/http.py:12", "karmada/kube/server"),
    ("/home/karmada/src/karmada/kube/server/storage/sqlite.py", "karmada/kube/server/storage"),
    ("/v/lib/python3.11/site-packages/aiohttp/web.py", "aiohttp"),
    ("/v/lib/python3.11/site-packages/uvloop/loop.cpython-311-x86_64-linux-gnu.so", "uvloop"),
    ("/usr/lib/python3.11/ssl.py:900", "python"),
    ("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "libcrypto"),
)
def test_a_file_is_in_a_package(file: str, package: str) -> None:
    assert package_of(file) == package


def test_shares_are_counted_once_a_stack() -> None:
    profile = profile_of(read_folded(FOLDED), "propagation.deployments", "control plane", 100)
    assert profile.samples == 100
    packages = {share.name: (share.self, share.cumulative) for share in profile.packages}
    assert packages["karmada/kube/server"] == (0.9, 0.9)
    assert packages["karmada/controllers/binding"] == (0.1, 0.4)
    assert packages["python"] == (0.0, 1.0)
    functions = {share.name: share.self for share in profile.functions}
    assert functions["karmada/kube/server:write"] == 0.9
    assert profile.packages[0].name == "karmada/kube/server"


def test_what_has_no_control_plane_cannot_be_profiled(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="example cannot be profiled"):
        profiled(Example(), 10, tmp_path)


def test_a_process_that_is_not_there_cannot_be_checked(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="py-spy could not look"), looking_at(2**22 - 1, tmp_path / "folded"):
        pass
