"""For how long a client certificate is valid, and what remains of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cryptography import x509


class Validity(NamedTuple):
    """From when to when, in seconds since the epoch."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start

    def remaining(self, now: float) -> float:
        """Return the part of the time that is left; 0 and less when it is over."""
        return (self.end - now) / self.seconds if self.seconds > 0 else 0.0


def validity(chain: Sequence[x509.Certificate]) -> Validity:
    """Return until when all certificates are valid."""
    return Validity(
        max(certificate.not_valid_before_utc.timestamp() for certificate in chain),
        min(certificate.not_valid_after_utc.timestamp() for certificate in chain),
    )


def load_chain(pem: bytes) -> list[x509.Certificate]:
    """ValueError when there is no certificate in it."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise ValueError(f"the client certificate cannot be read: {error}") from error
