"""The garbage collector while tests run: what stays is exempt from it, what a test has left is freed soon."""

from __future__ import annotations

import gc

from aiohttp import web_app

from karmada.kube.objects import doc

_THRESHOLDS = (100_000, 50, 50)
_freeze = gc.freeze


def collect_rarely() -> None:
    """Modules and tests stay to the end: looking for garbage among them took a third of the time of their collection,
    and a fifth of that of the tests."""
    gc.set_threshold(*_THRESHOLDS)
    gc.freeze = _leave


def _leave() -> None:
    """In place of `gc.freeze`: programs that run in a test would exempt what is alive in its middle, so that their
    servers were never freed, and be examined after every test to come."""


def release_servers() -> None:
    """Empty the caches of the process that hold what servers had, which would be examined after every test to come."""
    doc._kept.clear()
    web_app._cached_build_middleware.cache_clear()


def free_the_dead() -> None:
    """Collect, and exempt from later collections what is alive."""
    collect_rarely()  # programs that ran in a test have set thresholds of their own
    gc.collect()
    _freeze()
