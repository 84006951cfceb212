"""The key usages of the certificates API and what they are called inside a certificate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509

_KEY_USAGES = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
_EXTENDED = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}

ANY_OID, CLIENT_AUTH_OID = _EXTENDED["any"], _EXTENDED["client auth"]
ALL_USAGES: frozenset[str] = frozenset(_KEY_USAGES) | frozenset(_EXTENDED)


def key_usage(usages: Iterable[str]) -> x509.KeyUsage | None:
    """Return None without any such usage: an empty extension would make the certificate invalid."""
    from cryptography import x509

    bits = dict.fromkeys(_KEY_USAGES.values(), False)
    for usage in usages:
        if usage in _KEY_USAGES:
            bits[_KEY_USAGES[usage]] = True
    if bits["encipher_only"] or bits["decipher_only"]:
        bits["key_agreement"] = True
    return x509.KeyUsage(**bits) if any(bits.values()) else None


def extended_key_usage(usages: Iterable[str]) -> x509.ExtendedKeyUsage | None:
    from cryptography import x509

    oids = dict.fromkeys(_EXTENDED[usage] for usage in usages if usage in _EXTENDED)
    return x509.ExtendedKeyUsage([x509.ObjectIdentifier(oid) for oid in oids]) if oids else None
