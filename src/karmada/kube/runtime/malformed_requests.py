"""What the log says of requests that are not HTTP: one short line each, without what was sent, and not many of them.

aiohttp logs such a request with a traceback that quotes the offending line, so anybody who reaches the port could fill
the disk, and a client with a broken header writes its own token into the log. A filter on aiohttp's logger replaces
these records; other records of it pass unchanged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from aiohttp.http_exceptions import HttpProcessingError

_WINDOW_SECONDS = 60.0
_LINES = 10
"""So many lines in a window."""


class MalformedRequests(logging.Filter):
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._ends = 0.0
        self._seen = 0

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError):
            return True
        now = self._now()
        suppressed = 0
        if now >= self._ends:
            suppressed = max(0, self._seen - _LINES)
            self._ends, self._seen = now + _WINDOW_SECONDS, 0
        self._seen += 1
        if self._seen > _LINES:
            return False
        pairs = {"remote": record.args[0] if isinstance(record.args, tuple) and record.args else ""}
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.msg, record.args, record.exc_info = "Malformed HTTP request", (), None
        record.__dict__["pairs"] = {**pairs, "problem": type(error).__name__, "suppressed": suppressed}
        return True


def shorten_malformed_requests() -> None:
    """For all aiohttp servers of the process; a second call changes nothing."""
    logger = logging.getLogger("aiohttp.server")
    if not any(isinstance(found, MalformedRequests) for found in logger.filters):
        logger.addFilter(MalformedRequests())
