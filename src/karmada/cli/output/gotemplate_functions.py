"""The functions of Go's templates, and the one kubectl adds: base64decode."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote_plus


class _Missing:
    """A field that is not there, where that is no error."""

    def __bool__(self) -> bool:
        return False


MISSING = _Missing()


class FunctionError(Exception):
    """`calling`: the function itself failed, rather than what it was given."""

    def __init__(self, why: str, *, calling: bool = True) -> None:
        super().__init__(why)
        self.calling = calling


def truth(value: Any) -> bool:
    """Whatever is zero or empty is false."""
    return bool(value)


def printed(value: Any) -> str:
    """Return what an action leaves in the output."""
    return "<no value>" if value is None or value is MISSING else _text(value)


def _text(value: Any) -> str:
    from karmada.kube.objects.go_values import go_value

    if value is None or value is MISSING:
        return "<nil>"
    return value if isinstance(value, str) else go_value(value)


# comparing


def _sort_of(value: Any) -> str:
    if value is None or value is MISSING:
        return "nil"
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _equal(left: Any, right: Any) -> bool:
    one, other = _sort_of(left), _sort_of(right)
    if "nil" in (one, other):
        return one == other
    for sort, value in ((one, left), (other, right)):
        if sort in ("dict", "list"):
            raise FunctionError(f"non-comparable type {_text(value)}: {_go_sort(value)}")
    if one != other:
        raise FunctionError("incompatible types for comparison")
    return bool(left == right)


def _go_sort(value: Any) -> str:
    return "map[string]interface {}" if isinstance(value, dict) else "[]interface {}"


def _eq(*values: Any) -> bool:
    if len(values) < 2:
        raise FunctionError("missing argument for comparison")
    return any(_equal(values[0], other) for other in values[1:])


def _ne(left: Any, right: Any) -> bool:
    return not _equal(left, right)


def _less(left: Any, right: Any) -> bool:
    one, other = _sort_of(left), _sort_of(right)
    if one != other:
        raise FunctionError("incompatible types for comparison")
    if one not in ("number", "str"):
        raise FunctionError("invalid type for comparison")
    return bool(left < right)


def _le(left: Any, right: Any) -> bool:
    return _less(left, right) or _equal(left, right)


def _gt(left: Any, right: Any) -> bool:
    return not _le(left, right)


def _ge(left: Any, right: Any) -> bool:
    return not _less(left, right)


# looking into values


def _len(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, list | dict):
        return len(value)
    if value is None or value is MISSING:
        raise FunctionError("len of nil pointer")
    raise FunctionError(f"len of type {_go_type(value)}")


def _go_type(value: Any) -> str:
    from karmada.kube.objects.go_values import go_type

    return "int" if type(value) is int else go_type(value)


def _index(value: Any, *indexes: Any) -> Any:
    for index in indexes:
        if value is None or value is MISSING:
            raise FunctionError("index of untyped nil")
        value = _item(value, index)
    return value


def _item(value: Any, index: Any) -> Any:
    if isinstance(value, dict):
        if not isinstance(index, str):
            raise FunctionError(f"value has type {_go_type(index)}; should be string")
        return value.get(index, MISSING)
    if isinstance(value, list | str):
        place = _place(index, len(value), "index")
        return value[place] if isinstance(value, list) else value.encode()[place]
    raise FunctionError(f"can't index item of type {_go_type(value)}")


def _place(index: Any, length: int, what: str, *, most: int = -1) -> int:
    if isinstance(index, bool) or not isinstance(index, int | float) or index != int(index):
        raise FunctionError(f"cannot {what} slice/array with type {_go_type(index)}")
    place = int(index)
    if place < 0 or place > (most if most >= 0 else length - 1):
        raise FunctionError(f"index out of range: {place}")
    return place


def _slice(value: Any, *bounds: Any) -> Any:
    if value is None or value is MISSING:
        raise FunctionError("slice of untyped nil")
    if not isinstance(value, list | str):
        raise FunctionError(f"can't slice item of type {_go_type(value)}")
    if len(bounds) > 3:
        raise FunctionError(f"too many slice indexes: {len(bounds)}")
    if isinstance(value, str) and len(bounds) == 3:
        raise FunctionError("cannot 3-index slice a string")
    data: Any = value.encode() if isinstance(value, str) else value
    places = [_place(bound, len(data), "index", most=len(data)) for bound in bounds[:2]]
    start = places[0] if places else 0
    end = places[1] if len(places) > 1 else len(data)
    if start > end:
        raise FunctionError(f"invalid slice index: {start} > {end}")
    cut = data[start:end]
    return cut.decode(errors="replace") if isinstance(cut, bytes) else cut


# text


def _print(*values: Any) -> str:
    """Blanks between neighbours of which neither is text."""
    out = ""
    for number, value in enumerate(values):
        if number and not isinstance(value, str) and not isinstance(values[number - 1], str):
            out += " "
        out += _text(value)
    return out


def _println(*values: Any) -> str:
    return " ".join(_text(value) for value in values) + "\n"


_VERB = re.compile(r"%([-+# 0]*)(\d+|\*)?(?:\.(\d+|\*)?)?([a-zA-Z%])|%")
_NUMERIC = {"d": "d", "b": "b", "o": "o", "x": "x", "X": "X", "c": "c"}


def _printf(form: Any, *values: Any) -> str:
    if not isinstance(form, str):
        raise FunctionError(f"wrong type for value; expected string; got {_go_type(form)}", calling=False)
    rest = list(values)

    def one(match: re.Match[str]) -> str:
        flags, width, precision, verb = match.groups()
        if verb is None:
            return "%!(NOVERB)"
        if verb == "%":
            return "%"
        has_precision = "." in match[0]
        if width == "*":
            width = str(rest.pop(0)) if rest else ""
        if precision == "*":
            precision = str(rest.pop(0)) if rest else ""
        if not rest:
            return f"%!{verb}(MISSING)"
        value = rest.pop(0)
        text = _formatted(verb, value, flags, int(precision or 0) if has_precision else None)
        return _padded(text, flags, int(width or 0), isinstance(value, int | float) and verb != "s")

    text = _VERB.sub(one, form)
    if rest:
        text += "%!(EXTRA " + ", ".join(f"{_go_type(value)}={_text(value)}" for value in rest) + ")"
    return text


def _padded(text: str, flags: str, width: int, number: bool) -> str:
    if "-" in flags:
        return text.ljust(width)
    if "0" in flags and number:
        return text.zfill(width)
    return text.rjust(width)


def _formatted(verb: str, value: Any, flags: str, precision: int | None) -> str:
    if verb == "v" or (verb == "s" and isinstance(value, str)):
        text = _text(value)
        return text[:precision] if verb == "s" and precision is not None else text
    if verb == "s" and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return _text(value)
    if verb == "T":
        return _go_type(value)
    if verb == "q" and isinstance(value, str):
        from karmada.kube.objects.quoting import go_quote

        return go_quote(value)
    if verb == "t" and isinstance(value, bool):
        return _text(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(verb, value, flags, precision)
    if verb in "xX" and isinstance(value, str):
        text = value.encode().hex()
        return text.upper() if verb == "X" else text
    return f"%!{verb}({_go_type(value)}={_text(value)})"


def _number(verb: str, value: float, flags: str, precision: int | None) -> str:
    sign = "+" if "+" in flags else ""
    if verb in _NUMERIC and value == int(value):
        return format(int(value), (sign if verb != "c" else "") + _NUMERIC[verb])
    if verb == "U" and value == int(value):
        return f"U+{int(value):04X}"
    if verb in "eEfFgG":
        if verb in "gG" and precision is None:
            return _text(float(value))
        return format(float(value), f"{sign}.{6 if precision is None else precision}{verb}")
    return f"%!{verb}({_go_type(value)}={_text(value)})"


_HTML = {"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
_JS = {"\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026", "=": "\\u003D"}


def _html(*values: Any) -> str:
    return "".join(_HTML.get(letter, letter) for letter in _print(*values))


def _js(*values: Any) -> str:
    return "".join(_JS.get(letter, f"\\u{ord(letter):04X}" if letter < " " else letter) for letter in _print(*values))


def _urlquery(*values: Any) -> str:
    return quote_plus(_print(*values))


def _base64decode(value: Any) -> str:
    try:
        return base64.b64decode(str(value), validate=True).decode(errors="replace")
    except (binascii.Error, ValueError) as error:
        raise FunctionError(f"base64 decode failed: {error}") from error


def _exists(value: Any, *keys: Any) -> bool:
    """Return whether a way of keys and numbers leads somewhere."""
    try:
        return _index(value, *keys) is not MISSING
    except FunctionError:
        return False


def _not(value: Any) -> bool:
    return not truth(value)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and": lambda *_: None,  # these two look at what they need only, and are the caller's
    "or": lambda *_: None,
    "not": _not,
    "len": _len,
    "index": _index,
    "slice": _slice,
    "print": _print,
    "printf": _printf,
    "println": _println,
    "html": _html,
    "js": _js,
    "urlquery": _urlquery,
    "eq": _eq,
    "ne": _ne,
    "lt": _less,
    "le": _le,
    "gt": _gt,
    "ge": _ge,
    "base64decode": _base64decode,
    "exists": _exists,
}
