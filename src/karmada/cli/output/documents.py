"""Objects as text: JSON, YAML and KYAML, letter by letter as kubectl writes them."""

from __future__ import annotations

import json
import re
from typing import Any

from karmada.kube.objects.go_json import compact_json

_DIGITS = re.compile(r"(\d+)")
_TAG = "tag:yaml.org,2002:"
_WORDS = frozenset(
    word
    for lower in ("y", "yes", "true", "on", "n", "no", "false", "off", "null")
    for word in (lower, lower.capitalize(), lower.upper())
) | {"", "~", ".nan", ".NaN", ".NAN"}
_NOT_TEXT = re.compile(
    r"""(?x)
    [-+]?(?:
        0[bB][01_]+ | 0[xX][0-9a-fA-F_]+ | 0[oO]?[0-7_]+ | [0-9][0-9_]*
      | (?:\.[0-9_]+ | [0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?
      | \.(?:inf|Inf|INF)
      | [0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?
    )
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:Z|[-+][0-9:]+|\ Z)?)?
    """
)
"""Text that YAML would read as a number, a time or a number in base 60."""
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")


def means_text(text: str) -> bool:
    """Return whether YAML reads it as text when it stands there without quotes."""
    return text not in _WORDS and _NOT_TEXT.fullmatch(text) is None


def natural(key: str) -> list[tuple[int, int, str]]:
    """For sorting: letters after everything else, digits by the number they make."""
    parts: list[tuple[int, int, str]] = []
    for part in _DIGITS.split(key):
        if part.isdecimal():
            parts.append((1, int(part), part))
        else:
            parts.extend((2 if letter.isalpha() else 0, 0, letter) for letter in part)
    return parts


def to_yaml(value: Any) -> str:
    import yaml

    text: str = yaml.dump(
        _ordered(value), Dumper=_dumper(), allow_unicode=True, default_flow_style=False, sort_keys=False, width=80
    )
    return text


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value, key=natural)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


_made: list[Any] = []


def _dumper() -> Any:
    """Made at the first use: the YAML library is not for those who only look at tables."""
    if _made:
        return _made[0]
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, _: Any) -> bool:
            return True

        def resolve(self, kind: type[Any], value: Any, implicit: Any) -> str:
            """Quote only the text that needs it."""
            return (
                _TAG + "str" if kind is yaml.ScalarNode and implicit[0] else str(super().resolve(kind, value, implicit))
            )

    def text(dumper: Any, value: str) -> Any:
        style = "|" if "\n" in value else None if means_text(value) else '"'
        return dumper.represent_scalar(_TAG + "str", value, style=style)

    Dumper.add_representer(str, text)
    for sort in (bool, int, float, type(None)):
        Dumper.add_representer(sort, lambda dumper, value: dumper.represent_scalar(_TAG + "str", compact_json(value)))
    _made.append(Dumper)
    return Dumper


def to_kyaml(value: Any) -> str:
    """YAML that is as strict as JSON: braces, quotes around all text, commas behind everything."""
    return f"---\n{_kyaml(value, '')}\n"


def _kyaml(value: Any, indent: str) -> str:
    inner = indent + "  "
    if isinstance(value, dict):
        if not value:
            return "{}"
        lines = [f"{inner}{_key(key)}: {_kyaml(value[key], inner)},\n" for key in sorted(value)]
        return "{\n" + "".join(lines) + indent + "}"
    if isinstance(value, list):
        if not value:
            return "[]"
        if all(isinstance(item, dict | list) and item for item in value):
            return "[" + ", ".join(_kyaml(item, indent) for item in value) + "]"
        return "[\n" + "".join(f"{inner}{_kyaml(item, inner)},\n" for item in value) + indent + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and means_text(key) else json.dumps(key, ensure_ascii=False)
