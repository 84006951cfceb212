"""Names: what is allowed, and what Kubernetes says of the rest."""

from __future__ import annotations

import re
import subprocess
import sys
import uuid
from collections.abc import Callable

from karmada.kube.objects import names
from tests.support.cases import cases

Check = Callable[[str], list[str]]

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@cases(
    (names.dns1123_subdomain, "a"), (names.dns1123_subdomain, "a.b-c.9"), (names.dns1123_subdomain, "a" * 253),
    (names.dns1123_label, "9-a"), (names.dns1123_label, "a" * 63), (names.dns1035_label, "a-9"),
    (names.path_segment, "system:node"), (names.path_segment, "..."),
    (names.qualified_name, "App_1.x"), (names.qualified_name, "example.com/App"), (names.qualified_name, "x" * 63),
    (names.label_value, ""), (names.label_value, "A.b_c-9"), (names.label_value, "v" * 63),
    (names.config_key, "a.B_c-1"), (names.config_key, ".hidden"), (names.port_name, "http-2"),
    (names.wildcard_dns1123_subdomain, "*.example.com"),
)  # fmt: skip
def test_good_names_have_no_messages(check: Check, name: str) -> None:
    assert check(name) == []


@cases(
    (names.dns1123_subdomain, "", [SUBDOMAIN]), (names.dns1123_subdomain, "A", [SUBDOMAIN]),
    (names.dns1123_subdomain, "a..b", [SUBDOMAIN]), (names.dns1123_subdomain, "a\n", [SUBDOMAIN]),
    (names.dns1123_subdomain, "a" * 254, ["must be no more than 253 bytes"]),
    (names.dns1123_subdomain, "A" * 254, ["must be no more than 253 bytes", SUBDOMAIN]),
    (names.dns1123_label, "a.b", ["must not contain dots"]),
    (names.dns1123_label, "a" * 64, ["must be no more than 63 bytes"]),
    (names.dns1123_label, "é" * 32, ["must be no more than 63 bytes", LABEL]),
    (names.dns1035_label, "9a", [LABEL_1035]), (names.dns1035_label, "a-", [LABEL_1035]),
    (names.path_segment, ".", ["may not be '.'"]), (names.path_segment, "..", ["may not be '..'"]),
    (names.path_segment, "a/b%", ["may not contain '/'", "may not contain '%'"]),
    (names.qualified_name, "", ["name part must be non-empty", f"name part {QUALIFIED}"]),
    (names.qualified_name, "/a", ["prefix part must be non-empty"]),
    (names.qualified_name, "A/a", [f"prefix part {SUBDOMAIN}"]),
    (names.qualified_name, "a/" + "b" * 64, ["name part must be no more than 63 bytes"]),
    (names.qualified_name, "a/b/c", [f"a qualified name {QUALIFIED} with an optional DNS subdomain prefix and '/' "
                                     "(e.g. 'example.com/MyName')"]),
    (names.label_value, "v" * 64, ["must be no more than 63 bytes"]),
    (names.config_key, "..", ["must not be '..'"]), (names.config_key, "..a", ["must not start with '..'"]),
    (names.port_name, "a--b-", ["must not contain consecutive hyphens", "must not begin or end with a hyphen"]),
    (names.port_name, "80", ["must contain at least one letter (a-z)"]),
    (names.port_name, "abcdefghijklmnop", ["must be no more than 15 bytes"]),
)  # fmt: skip
def test_bad_names_have_kubernetes_messages(check: Check, name: str, messages: list[str]) -> None:
    assert check(name) == messages


def test_a_random_suffix_uses_only_the_safe_alphabet() -> None:
    suffixes = {names.random_suffix() for _ in range(200)}
    assert all(re.fullmatch("[bcdfghjklmnpqrstvwxz2456789]{5}", suffix) for suffix in suffixes)
    assert len(suffixes) > 190
    assert len(names.random_suffix(10)) == 10


def test_a_random_uuid_is_one_of_version_four() -> None:
    made = [names.random_uuid() for _ in range(200)]
    assert len(set(made)) == 200
    assert all(str(uuid.UUID(text)) == text and uuid.UUID(text).version == 4 for text in made)
    assert all(uuid.UUID(text).variant == uuid.RFC_4122 for text in made)


def test_the_bytes_of_a_random_uuid_are_one_of_version_four() -> None:
    made = [uuid.UUID(bytes=names.random_uuid_bytes()) for _ in range(200)]
    assert len(set(made)) == 200
    assert {(one.version, one.variant) for one in made} == {(4, uuid.RFC_4122)}
    assert all(names.uuid_text(one.bytes) == str(one) for one in made)


def test_a_forked_process_makes_uuids_of_its_own() -> None:
    program = (
        "import os\n"
        "from karmada.kube.objects.names import random_uuid\n"
        "pid = os.fork()\n"
        "if pid: os.waitpid(pid, 0)\n"
        "print(random_uuid())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    child, parent = done.stdout.split()
    assert child != parent


@cases(("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968))
def test_fnv_has_its_published_vectors(data: str, fnv1a: int) -> None:
    assert (names.fnv32a(data), names.fnv32a(data.encode())) == (fnv1a, fnv1a)


def test_a_short_hash_is_made_of_safe_characters_and_ignores_key_order() -> None:
    assert names.short_hash("foobar") == names.safe_encode("3214735720")
    assert set(names.short_hash("foobar")) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert names.short_hash({"a": 1, "b": 2}) == names.short_hash({"b": 2, "a": 1})
    assert names.short_hash({"a": 1}) != names.short_hash({"a": 2})


def test_safe_encoding_is_that_of_kubernetes() -> None:
    assert names.safe_encode("0123456789") == "456789bcdf"
