"""Pins of authorities: written, read and compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.joining.pull.pins import check_pinned, parse_pins, pins_of
from karmada.kube.server.auth.pki import CertificateAuthority
from tests.support.cases import cases

ONE, OTHER = (CertificateAuthority.create(name).cert_pem for name in ("one", "other"))


def test_each_certificate_of_a_bundle_has_a_pin() -> None:
    assert pins_of(ONE + b"\n" + OTHER) == pins_of(ONE) + pins_of(OTHER)


def test_one_pinned_authority_is_enough() -> None:
    check_pinned(ONE + b"\n" + OTHER, parse_pins(pins_of(OTHER)))
    with pytest.raises(ValueError, match=r'none of the public keys \["sha256:[0-9a-f]{64}"\] are pinned'):
        check_pinned(ONE, parse_pins(pins_of(OTHER)))


@given(st.binary(min_size=32, max_size=32))
def test_a_pin_is_read_whatever_the_case_of_its_letters(digest: bytes) -> None:
    text = f"sha256:{digest.hex()}"
    assert parse_pins([text, f"SHA256:{digest.hex().upper()}"]) == {text}


@cases(
    ("abc", 'invalid hash, expected "format:value"'),
    ("md5:00", 'unknown hash format "md5"'),
    ("sha256:xx", "could not decode SHA-256 from hex"),
    ("sha256:00", "expected a 32 byte SHA-256 hash, found 1 bytes"),
)
def test_what_is_no_pin_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_pins([text])
