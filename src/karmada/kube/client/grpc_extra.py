"""What a user reads when gRPC is needed and its libraries are not installed."""

from __future__ import annotations


def missing_grpc(need: str, error: ImportError, extra: str = "grpc") -> str:
    """`need` is what cannot be done without it."""
    return f"{need} needs the Python package of {error.name}: pip install 'pykarmada[{extra}]'"
