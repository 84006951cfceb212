from __future__ import annotations

import pytest

from karmada.kube.schema.formats import check_of

VECTORS: list[tuple[str, list[str], list[str]]] = [
    ("bsonobjectid", ["507f1f77bcf86cd799439011"], ["507f", "z07f1f77bcf86cd799439011"]),
    ("uri", ["https://example.com/a?b#c", "/path", "mailto:x"], ["", "no scheme", "https://a b", "http://[::1"]),
    ("email", ["a@b.c", "A Name <a@b.c>", '"x y"@z'], ["a", "@b", "a@", "a..b@c", "a b@c"]),
    ("hostname", ["a", "a-b.example"], ["", "-a", "1a", "a_b", "a" * 64]),
    ("ipv4", ["1.2.3.4"], ["::1", "1.2.3", "256.1.1.1", "01.2.3.4"]),
    ("ipv6", ["::1", "fe80::1"], ["1.2.3.4", "fe80::1%eth0", ":::"]),
    ("cidr", ["10.0.0.0/8", "::/0"], ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/08"]),
    ("mac", ["00:1b:44:11:3a:b7", "001b.4411.3ab7"], ["00:1b:44:11:3a", "xx:1b:44:11:3a:b7"]),
    ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-42661417400"]),
    ("uuid3", ["6fa459ea-ee8a-3ca4-894e-db77e160355e"], ["6fa459ea-ee8a-4ca4-894e-db77e160355e"]),
    ("uuid4", ["6fa459ea-ee8a-4ca4-894e-db77e160355e"], ["6fa459ea-ee8a-4ca4-094e-db77e160355e"]),
    ("uuid5", ["6fa459ea-ee8a-5ca4-894e-db77e160355e"], ["6fa459ea-ee8a-3ca4-894e-db77e160355e"]),
    ("isbn", ["0-306-40615-2", "978-0-306-40615-7"], ["0-306-40615-3"]),
    ("isbn10", ["080442957X"], ["9780306406157"]),
    ("isbn13", ["9780306406157"], ["9780306406158"]),
    ("creditcard", ["4111 1111 1111 1111"], ["4111111111111112", "12"]),
    ("ssn", ["123-45-6789", "123456789"], ["12-345-6789"]),
    ("hexcolor", ["#fff", "00ff00"], ["#ffff", "red"]),
    ("rgbcolor", ["rgb(1, 2,255)"], ["rgb(1,2,256)", "rgb(1,2)"]),
    ("byte", ["", "YWI="], ["YWI", "!!"]),
    ("date", ["2024-02-29"], ["2023-02-29", "2024-2-9", "20240229"]),
    ("duration", ["1h30m", "3 days", "5ms", "1w"], ["", "5", "5 parsecs"]),
    (
        "date-time",
        ["2024-02-29T10:00:00Z", "2024-02-29t10:00:00.5+02:00"],
        ["2024-02-29", "2024-02-29T24:00:00Z", "2024-02-29T10:00:00"],
    ),
    ("datetime", ["2024-02-29T10:00:00Z"], ["x"]),
    ("k8s-short-name", ["a-b"], ["a.b", "A"]),
    ("k8s-long-name", ["a.b"], ["a..b"]),
]


@pytest.mark.parametrize(("name", "good", "bad"), VECTORS)
def test_a_format_accepts_and_refuses(name: str, good: list[str], bad: list[str]) -> None:
    check = check_of(name)
    assert check is not None
    assert [value for value in good if not check(value)] == []
    assert [value for value in bad if check(value)] == []


@pytest.mark.parametrize("name", ["", "int32", "int64", "password", "something-else"])
def test_other_formats_are_not_enforced(name: str) -> None:
    assert check_of(name) is None
