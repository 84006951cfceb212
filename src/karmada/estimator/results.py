"""What the plug-ins of an estimator return, and how several results become one."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from karmada.estimator.terms import MAX_REPLICAS, EstimateError


class Code(Enum):
    SUCCESS = "Success"
    UNSCHEDULABLE = "Unschedulable"
    """Nothing fits."""
    NO_OPERATION = "Nooperation"
    """The plug-in has no say in this estimate."""
    ERROR = "Error"


class Result(NamedTuple):
    code: Code
    value: int = MAX_REPLICAS
    reason: str = ""


def merged(results: Iterable[Result], what: str) -> int:
    """Return the smallest of what counts; 0 if one plug-in says so. `what` is "replica" or "components".

    EstimateError: a plug-in failed.
    """
    least, failed, unschedulable = MAX_REPLICAS, list[str](), False
    for result in results:
        if result.code is Code.ERROR:
            failed.append(result.reason)
        elif result.code is not Code.NO_OPERATION:
            unschedulable = unschedulable or result.code is Code.UNSCHEDULABLE
            least = min(least, result.value)
    if failed:
        raise EstimateError(f"estimate {what} plugins fails with [{' '.join(failed)}]")
    return 0 if unschedulable else max(least, 0)
