from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from karmada.kube.runtime.loop_errors import report_loop_errors
from tests.support.cases import cases

CLOSED = RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")


@cases(
    ({"message": "Fatal error on SSL protocol", "exception": CLOSED}, False),
    ({"message": "Fatal error on SSL protocol", "exception": RuntimeError("other")}, True),
    ({"message": "Fatal error on SSL protocol", "exception": ValueError("the handler is closed")}, True),
    ({"message": "Task exception was never retrieved", "exception": CLOSED}, True),
    ({"message": "Unclosed"}, True),
)
async def test_only_data_that_comes_after_the_end_is_no_error(
    context: dict[str, Any], logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    report_loop_errors(loop)
    try:
        loop.call_exception_handler(context)
    finally:
        loop.set_exception_handler(None)
    assert bool([one for one in caplog.records if one.levelno >= logging.ERROR]) is logged
