"""Why a prediction cannot be made."""

from __future__ import annotations

from karmada.kube.objects.errors import UserError


class PredictionError(UserError):
    """The prediction cannot be made; the message says why, for whoever requested it."""
