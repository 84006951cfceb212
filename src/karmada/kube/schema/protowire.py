"""The protobuf wire format: varints, chunks, and the messages that have a JSON form of their own.

Readers of special messages take the message's bytes and give the JSON value (None: unset); writers do the reverse.
The same few quantities, ports and moments come again and again, so the readers of those remember.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson

from karmada.kube.objects.times import format_duration_ns, parse_duration_ns
from karmada.kube.schema.walk import DecodeError, canonical_quantity

Reader = Callable[[bytes], Any]
Writer = Callable[[Any], bytes]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
EOF = "unexpected EOF"
_EPOCH = datetime(1970, 1, 1)


def read_varint(buffer: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = buffer[at]
        at += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, at
        shift += 7
        if shift > 63:
            raise DecodeError("proto: integer overflow")


def extent(buffer: bytes, at: int, wire: int, end: int) -> tuple[int, int]:
    """Return where a value begins and ends, whatever it is."""
    if wire == BYTES:
        size, at = read_varint(buffer, at)
    elif wire == VARINT:
        start = at
        _, at = read_varint(buffer, at)
        return start, at
    elif wire in (FIXED64, FIXED32):
        size = 8 if wire == FIXED64 else 4
    else:
        raise DecodeError(f"proto: illegal wireType {wire}")
    if at + size > end:
        raise DecodeError(EOF)
    return at, at + size


def read_scalar(scalar: str, buffer: bytes, at: int) -> tuple[Any, int]:
    if scalar == "double":
        (number,) = struct.unpack_from("<d", buffer, at)
        return int(number) if number.is_integer() and abs(number) < 1e21 else number, at + 8
    value, at = read_varint(buffer, at)
    if scalar == "bool":
        return value != 0, at
    return (value if value < 1 << 63 else value - (1 << 64)), at


def chunk(number: int, data: bytes) -> bytes:
    return write_varint(number << 3 | BYTES) + write_varint(len(data)) + data


def write_varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def chunks(buffer: bytes, at: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of the length-delimited fields of a message."""
    while at < len(buffer):
        tag, at = read_varint(buffer, at)
        start, at = extent(buffer, at, tag & 7, len(buffer))
        if tag & 7 == BYTES:
            yield tag >> 3, buffer[start:at]


def ints(data: bytes) -> dict[int, int]:
    """Return the integers of a message by their field numbers."""
    found: dict[int, int] = {}
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        start, at = extent(data, at, tag & 7, len(data))
        if tag & 7 == VARINT:
            found[tag >> 3] = read_scalar("int", data, start)[0]
    return found


def content(data: bytes, number: int) -> bytes | None:
    """Return one length-delimited field of a message."""
    return dict(chunks(data)).get(number)


def write_ints(*values: int) -> bytes:
    return b"".join(write_varint(number << 3) + write_varint(value) for number, value in enumerate(values, 1))


def _moment(data: bytes) -> datetime | None:
    fields = ints(data)
    seconds, nanos = fields.get(1, 0), fields.get(2, 0)
    if not seconds and not nanos:
        return None
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        raise DecodeError("timestamp out of range") from None


@lru_cache(maxsize=4096)
def _read_time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else moment.isoformat(timespec="seconds") + "Z"


@lru_cache(maxsize=4096)
def _read_micro_time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else moment.isoformat(timespec="microseconds") + "Z"


def _write_time(text: str) -> bytes:
    moment = datetime.fromisoformat(text)
    since = moment.replace(tzinfo=None) - (moment.utcoffset() or timedelta()) - _EPOCH
    return write_ints(since.days * 86400 + since.seconds, since.microseconds * 1000)


@lru_cache(maxsize=4096)
def _read_quantity(data: bytes) -> str:
    text = content(data, 1)
    return canonical_quantity(text.decode()) if text else "0"


@lru_cache(maxsize=4096)
def _read_int_or_string(data: bytes) -> int | str:
    fields = ints(data)
    if fields.get(1) == 1:
        return (content(data, 3) or b"").decode()
    return fields.get(2, 0)


def _write_int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return write_ints(1, 0) + chunk(3, value.encode())
    return write_ints(0, value) + chunk(3, b"")


def _read_json(data: bytes) -> Any:
    raw = content(data, 1)
    return orjson.loads(raw) if raw else None


def _read_duration(data: bytes) -> str:
    return format_duration_ns(ints(data).get(1, 0))


def read_strings(data: bytes) -> list[str]:
    return [text.decode() for number, text in chunks(data) if number == 1]


def write_strings(values: list[str]) -> bytes:
    return b"".join(chunk(1, value.encode()) for value in values)


SPECIAL: dict[str, tuple[Reader, Writer]] = {
    "time": (_read_time, _write_time),
    "micro-time": (_read_micro_time, _write_time),
    "quantity": (_read_quantity, lambda value: chunk(1, str(value).encode())),
    "int-or-string": (_read_int_or_string, _write_int_or_string),
    "json": (_read_json, lambda value: chunk(1, orjson.dumps(value))),
    "fields-v1": (_read_json, lambda value: chunk(1, orjson.dumps(value))),
    "duration": (_read_duration, lambda value: write_ints(parse_duration_ns(value))),
    "bytes": (lambda data: base64.b64encode(data).decode(), base64.b64decode),
}
