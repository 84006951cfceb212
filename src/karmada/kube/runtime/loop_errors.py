"""Errors that the event loop reports because nobody awaits what failed.

All but one are logged as asyncio does it. A TLS connection that this side has closed while the other still sent
something makes uvloop report a fatal error of that connection, with a traceback: it is over, as was intended.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from karmada.kube.runtime.logging import get_logger

_TLS: Final = "Fatal error on SSL protocol"
_CLOSED: Final = "the handler is closed"

log = get_logger("event-loop")


def report_loop_errors(loop: asyncio.AbstractEventLoop) -> None:
    loop.set_exception_handler(_report)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if is_late_data(context):
        log.v(4).info("Data came on a TLS connection that was closed already")
        return
    loop.default_exception_handler(context)


def is_late_data(context: dict[str, Any]) -> bool:
    error = context.get("exception")
    message = str(context.get("message") or "")
    return message.startswith(_TLS) and isinstance(error, RuntimeError) and _CLOSED in str(error)
