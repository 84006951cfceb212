"""Structured logs: one line an event, a fixed message and key-value pairs.

    log = get_logger("binding")
    log.info("Work created", work=key, cluster="member1")
    log.v(4).info("Nothing to do", binding=key)

`setup` chooses the format, "text" as Kubernetes components write it (level, date, process, place, quoted message,
pairs) or "json" (one object a line), and the verbosity that `-v` sets. It stands on the standard logging module, so
that libraries' records come out the same way and tests can capture everything.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import IO, Any, ClassVar

from karmada.kube.runtime.log_file import VARIABLE, RotatingHandler

ROOT = "karmada"
_verbosity = 0


class Logger:
    """Its methods take the message and any number of key-value pairs."""

    __slots__ = ("_level", "_logger", "_pairs")

    def __init__(self, logger: logging.Logger, pairs: dict[str, Any] | None = None, level: int = 0) -> None:
        self._logger = logger
        self._pairs = pairs or {}
        self._level = level

    def bind(self, **pairs: Any) -> Logger:
        """Return a logger that adds these pairs to every line."""
        return Logger(self._logger, {**self._pairs, **pairs}, self._level)

    def v(self, level: int) -> Logger:
        """For details: silent unless the verbosity is at least `level`."""
        return Logger(self._logger, self._pairs, level)

    @property
    def enabled(self) -> bool:
        return self._level <= _verbosity

    def info(self, message: str, **pairs: Any) -> None:
        if self._level <= _verbosity:
            self._write(logging.INFO, message, pairs)

    def warning(self, message: str, **pairs: Any) -> None:
        self._write(logging.WARNING, message, pairs)

    def error(self, message: str, error: BaseException | None = None, **pairs: Any) -> None:
        self._write(logging.ERROR, message, pairs if error is None else {"err": str(error), **pairs})

    def exception(self, message: str, error: BaseException, **pairs: Any) -> None:
        """Log an unexpected error, with its traceback."""
        self._write(logging.ERROR, message, {"err": repr(error), **pairs}, error)

    def _write(self, level: int, message: str, pairs: dict[str, Any], error: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            extra = {"pairs": {**self._pairs, **pairs}, "v": self._level}
            self._logger.log(level, message, extra=extra, exc_info=error, stacklevel=3)


def get_logger(name: str) -> Logger:
    return Logger(logging.getLogger(f"{ROOT}.{name}"))


def verbosity() -> int:
    return _verbosity


def set_verbosity(level: int) -> None:
    global _verbosity
    _verbosity = level


def _show(value: Any) -> str:
    if isinstance(value, bool | int | float) or value is None:
        return json.dumps(value)
    if isinstance(value, dict | list | tuple) and not hasattr(value, "_fields"):
        return json.dumps(value, default=str, separators=(",", ":"))
    return json.dumps(str(value), ensure_ascii=False)


class TextFormatter(logging.Formatter):
    _LETTERS: ClassVar[dict[int, str]] = {
        logging.DEBUG: "I",
        logging.INFO: "I",
        logging.WARNING: "W",
        logging.ERROR: "E",
        logging.CRITICAL: "F",
    }

    def format(self, record: logging.LogRecord) -> str:
        at = time.localtime(record.created)
        stamp = f"{at.tm_mon:02d}{at.tm_mday:02d} {at.tm_hour:02d}:{at.tm_min:02d}:{at.tm_sec:02d}"
        micros = int(record.created % 1 * 1_000_000)
        letter = self._LETTERS.get(record.levelno, "I")
        head = f"{letter}{stamp}.{micros:06d} {record.process or os.getpid():7d} {record.filename}:{record.lineno}] "
        pairs: dict[str, Any] = getattr(record, "pairs", {})
        line = head + " ".join([json.dumps(record.getMessage(), ensure_ascii=False), *_text_pairs(pairs)])
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _text_pairs(pairs: dict[str, Any]) -> list[str]:
    return [f"{key}={_show(value)}" for key, value in pairs.items()]


class JSONFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "logger": record.name,
            "level": record.levelname.lower(),
            "msg": record.getMessage(),
            "v": getattr(record, "v", 0),
            **getattr(record, "pairs", {}),
        }
        if record.exc_info:
            line["stacktrace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


_FORMATS: dict[str, type[logging.Formatter]] = {"text": TextFormatter, "json": JSONFormatter}


def setup(*, verbosity: int = 0, format: str = "text", stream: IO[str] | None = None) -> None:  # noqa: A002
    """Send all logs of the process to `stream` (standard error, which rotates when it is a log file of ours)."""
    if format not in _FORMATS:
        raise ValueError(f"unknown log format {format!r} (known: {', '.join(_FORMATS)})")
    set_verbosity(verbosity)
    handler = _handler(stream)
    handler.setFormatter(_FORMATS[format]())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger(ROOT).setLevel(logging.INFO)


def _handler(stream: IO[str] | None) -> logging.Handler:
    path = os.environ.get(VARIABLE)
    if path and stream is None:
        return RotatingHandler(sys.stderr, Path(path))
    return logging.StreamHandler(stream or sys.stderr)
