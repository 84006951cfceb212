"""grpcio, imported at one place: it is optional (the extra `grpc`), has no types, and writes to stderr by default."""

from __future__ import annotations

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # failures are exceptions, not lines on stderr

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

__all__ = ["grpc"]
