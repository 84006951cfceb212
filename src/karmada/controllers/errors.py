"""Errors of concurrent calls, as one error."""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.objects.errors import ApiError, Conflict


def together(errors: Iterable[BaseException]) -> str:
    """Several errors in one text: each message once, in brackets unless there is only one."""
    messages = list(dict.fromkeys(str(error) for error in errors))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def raise_together(outcomes: Iterable[object]) -> None:
    """Do nothing unless some of the outcomes (of gather with return_exceptions) are errors.

    One message stays the error it was, several become one. Errors that are no ApiError go first, and conflicts count
    only when there are no others.
    """
    errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    for error in errors:
        if not isinstance(error, ApiError):
            raise error
    errors = [error for error in errors if not isinstance(error, Conflict)] or errors[:1]
    messages = list(dict.fromkeys(str(error) for error in errors))
    if len(messages) == 1:
        raise errors[0]
    if messages:
        raise ApiError(f"[{', '.join(messages)}]")
