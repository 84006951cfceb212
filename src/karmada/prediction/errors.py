"""Why a prediction cannot be made."""

from __future__ import annotations


class PredictionError(Exception):
    """What was given cannot be predicted; the message says why, for whoever requested it."""
