"""Why a prediction cannot be made."""

from __future__ import annotations


class PredictionError(Exception):
    """The prediction cannot be made; the message says why, for whoever requested it."""
