"""Tables: a test that runs once for each row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])


def cases(*rows: Any, ids: Iterable[str] | Callable[[Any], object] | None = None) -> Callable[[Test], Test]:
    """Run a test with each row: a tuple has the values of its first parameters, anything else that of the first alone.

    The parameters after those are fixtures."""

    def parametrized(test: Test) -> Test:
        names = [name for name in inspect.signature(test).parameters if name != "self"]
        width = len(rows[0]) if type(rows[0]) is tuple else 0
        return pytest.mark.parametrize(names[:width] if width else names[0], rows, ids=ids)(test)

    return parametrized
