"""`python -m tests.rewriting PATH ...`: compile tests as pytest does, with asserts that explain themselves.

The seven workers of a fresh clone would do it at the same time, each for all of its files: 7 s of CPU time each. Paths
may be among other words for pytest, as in `make test E2E='tests/e2e/test_helm.py -k charts'`.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

from _pytest.assertion import AssertionState
from _pytest.assertion.rewrite import PYC_TAIL, _rewrite_test, _write_pyc, get_cache_dir
from _pytest.config import get_config

_AT_ONCE = 16


def compiled(source: Path) -> Path:
    """Where pytest looks for it."""
    return get_cache_dir(source) / f"{source.stem}{PYC_TAIL}"


def missing(root: Path) -> Iterator[Path]:
    """Test files that are newer than what was compiled from them; `root` may be one."""
    for source in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
        if source.name == "conftest.py" or source.name.startswith("test_"):
            found = compiled(source)
            if not found.exists() or found.stat().st_mtime < source.stat().st_mtime:
                yield source


_config = cache(get_config)


def rewrite(source: Path) -> None:
    place = compiled(source)
    place.parent.mkdir(exist_ok=True)
    stamp, code = _rewrite_test(source, _config())
    _write_pyc(AssertionState(_config(), "rewrite"), code, stamp, place)


def main() -> None:
    roots = {path.absolute() for path in map(Path, sys.argv[1:]) if path.exists()}
    sources = sorted({source for root in roots for source in missing(root)})
    if sources:
        with ProcessPoolExecutor(os.cpu_count(), initializer=gc.disable) as pool:
            list(pool.map(rewrite, sources, chunksize=_AT_ONCE))


if __name__ == "__main__":
    main()
