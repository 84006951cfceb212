"""What validation reports, as text."""

from __future__ import annotations

from typing import Any


def texts(errors: list[Any]) -> list[str]:
    return [str(error) for error in errors]
