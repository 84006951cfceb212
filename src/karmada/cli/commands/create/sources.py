"""Where the values of a ConfigMap or a Secret come from: literals, files, directories, and files of KEY=VALUE lines.

Values are bytes here; what they become in an object is the kind's affair. A key that comes twice is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from karmada.cli.targeting import connect

_VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_VARIABLE_RULE = (
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not "
    "start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
    "'[-._a-zA-Z][-._a-zA-Z0-9]*')"
)


def collect(
    kind: str, name: str, *, literals: Sequence[str], files: Sequence[str], env_files: Sequence[str], file_key: str = ""
) -> dict[str, bytes]:
    """Return all values by their keys, which are in order; `file_key` is the key of a file for which none is given."""
    if env_files and (files or literals):
        raise connect.failure("from-env-file cannot be combined with from-file or from-literal")
    found: dict[str, bytes] = {}
    for key, value in (*_from_literals(literals), *_from_files(files, file_key), *_from_env_files(env_files)):
        _check_key(kind, key)
        if key in found:
            raise connect.failure(
                f'cannot add key "{key}", another key by that name already exists in Data for {kind} "{name}"'
            )
        found[key] = value
    return dict(sorted(found.items()))


def _check_key(kind: str, key: str) -> None:
    from karmada.kube.objects.names import config_key

    wrong = config_key(key)
    if wrong:
        what = "a valid key name for a ConfigMap:" if kind == "ConfigMap" else f"valid key name for a {kind}"
        raise connect.failure(f'"{key}" is not {what} {",".join(wrong)}')


def _from_literals(literals: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for literal in literals:
        key, equals, value = literal.partition("=")
        if not equals or not key:
            raise connect.failure(f"invalid literal source {literal}, expected key=value")
        yield key, value.encode()


def _from_files(files: Sequence[str], file_key: str) -> Iterator[tuple[str, bytes]]:
    for word in files:
        key, path = _parse_source(word)
        given = "=" in word
        if Path(path).is_dir():
            if given:
                raise connect.failure("cannot give a key name for a directory path")
            for child in sorted(Path(path).iterdir()):
                if child.is_file() and not child.is_symlink():
                    yield child.name, read_or_fail(str(child))
            continue
        yield key if given or not file_key else file_key, read_or_fail(path)


def _parse_source(word: str) -> tuple[str, str]:
    key, equals, path = word.partition("=")
    if not equals:
        return Path(word).name, word
    if not key:
        raise connect.failure(f"key name for file path {path} missing")
    if not path:
        raise connect.failure(f"file path for key name {key} missing")
    if "=" in path:
        raise connect.failure("key names or file paths cannot contain '='")
    return key, path


def read_or_fail(path: str, refusal: str = "error reading {path}") -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise connect.failure(f"{refusal.format(path=path)}: {(error.strerror or str(error)).lower()}") from error


def _from_env_files(paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        text = read_or_fail(path).removeprefix(b"\xef\xbb\xbf")
        for number, line in enumerate(text.split(b"\n"), start=1):
            try:
                pair = _env_line(line.removesuffix(b"\r").decode())
            except UnicodeDecodeError as error:
                raise connect.failure(f"env file {path} contains invalid utf8 bytes at line {number}") from error
            if pair is not None:
                yield pair


def _env_line(line: str) -> tuple[str, bytes] | None:
    """Return the variable of a line; one without `=` takes its value from the environment."""
    line = line.lstrip()
    if not line or line.startswith("#"):
        return None
    key, equals, value = line.partition("=")
    if not _VARIABLE.fullmatch(key):
        raise connect.failure(f'"{key}" is not a valid key name: {_VARIABLE_RULE}')
    return key, (value if equals else os.environ.get(key, "")).encode()
