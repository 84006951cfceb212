"""-f, -k and -R: the objects that a person keeps in files.

A word after -f is a file, a directory (its .json, .yaml and .yml files, in order), a pattern, a URL, or `-` for
standard input. Documents are parsed one by one, so that a file may have as many as it likes; Lists are taken apart.
Nothing is done with any object before all files could be read: a malformed one costs nothing but its message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.objects.types import Obj

F = TypeVar("F", bound=Callable[..., Any])
EXTENSIONS = (".json", ".yaml", ".yml")
STDIN = "STDIN"
_URL_SECONDS = 30.0
_URL_ATTEMPTS = 3
_DEEPEST = 254
"""Levels of nesting that can be written as JSON again."""
_GO_TYPES = {str: "string", list: "array", bool: "bool", int: "number", float: "number"}


@dataclass(frozen=True, slots=True)
class Source:
    """An object, and the file (or URL, or STDIN) it was read from."""

    obj: Obj
    name: str


def file_flags(command: F) -> F:
    """-f/--filename, -k/--kustomize and -R/--recursive."""
    for option in (
        click.option("-R", "--recursive", is_flag=True, help="Descend into the directories of -f."),
        click.option("-k", "--kustomize", default="", help="A kustomization directory, instead of -f."),
        click.option(
            "-f",
            "--filename",
            "filenames",
            multiple=True,
            help="A file, directory, pattern or URL with objects, or - for standard input; may be repeated.",
        ),
    ):
        command = option(command)
    return command


def require_files(filenames: Sequence[str], kustomize: str) -> None:
    """For commands that can do nothing without."""
    if not filenames and not kustomize:
        raise connect.failure("must specify one of -f and -k")


def read_files(filenames: Sequence[str], kustomize: str = "", recursive: bool = False) -> list[Source]:
    """Return all objects, in the order of the files; Failure names the file and, if it is malformed, the line."""
    if filenames and kustomize:
        raise connect.failure("only one of -f or -k can be specified")
    if kustomize:
        return [Source(obj, kustomize) for obj in parse_objects(_kustomized(kustomize), kustomize)]
    words = connect.commas(filenames)
    found: list[Source] = []
    for name, read in _readers(words, recursive):
        found += [Source(obj, name) for obj in parse_objects(read(), name)]
    return found


def read_documents(word: str) -> list[Any]:
    """Return what a file (or URL, or - for standard input) holds, whether these are objects or not."""
    return [document for name, read in _readers([word], False) for document in _documents(read(), name)]


# files to texts


def _readers(words: Sequence[str], recursive: bool) -> list[tuple[str, Callable[[], bytes]]]:
    """Return what is to be read, known to exist before the first of it is read."""
    readers: list[tuple[str, Callable[[], bytes]]] = []
    for word in words:
        if word == "-":
            readers.append((STDIN, _read_stdin))
        elif word.startswith(("http://", "https://")):
            readers.append((word, lambda url=word: _fetch(url)))  # type: ignore[misc]
        else:
            paths = [path for match in _matches(word) for path in _expand(match, recursive)]
            readers += [(str(path), path.read_bytes) for path in paths]
            if not readers:
                raise connect.failure(
                    f"error reading [{word}]: recognized file extensions are [{' '.join(EXTENSIONS)}]"
                )
    return readers


def _matches(word: str) -> list[Path]:
    path = Path(word)
    if path.exists():
        return [path]
    from glob import glob

    found = sorted(glob(word)) if any(character in word for character in "*?[") else []
    if not found:
        raise connect.failure(f'the path "{word}" does not exist')
    return [Path(match) for match in found]


def _expand(path: Path, recursive: bool) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    try:
        children = sorted(path.iterdir())
    except OSError as error:
        raise connect.failure(f"error reading {path}: {error.strerror}") from error
    for child in children:
        if child.is_dir():
            if recursive:
                yield from _expand(child, recursive)
        elif child.suffix in EXTENSIONS:
            yield child


def _read_stdin() -> bytes:
    import sys

    return sys.stdin.buffer.read()


def _fetch(url: str) -> bytes:
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    request = Request(url, headers={"User-Agent": connect.USER_AGENT})
    for attempt in range(1, _URL_ATTEMPTS + 1):
        try:
            with urlopen(request, timeout=_URL_SECONDS) as response:
                body: bytes = response.read()
                return body
        except HTTPError as error:
            if error.code < 500 or attempt == _URL_ATTEMPTS:
                raise connect.failure(
                    f'unable to read URL "{url}", server reported {error.code} {error.reason}, status code={error.code}'
                ) from error
        except OSError as error:
            cause = error.reason if isinstance(error, URLError) else error
            why = connect.reason(cause) if isinstance(cause, OSError) else cause
            raise connect.failure(f'unable to read URL "{url}": {why}') from error
    raise AssertionError("unreachable")


def _kustomized(directory: str) -> bytes:
    """Return what the kustomization makes; kustomize, or else the one inside kubectl, does the work."""
    import shutil
    import subprocess

    kustomize, kubectl = shutil.which("kustomize"), shutil.which("kubectl")
    if kustomize is None and kubectl is None:
        raise connect.failure("-k needs kustomize or kubectl, and neither is on PATH; build the manifests elsewhere")
    command = [kustomize, "build", directory] if kustomize else [str(kubectl), "kustomize", directory]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise connect.failure(_complaint(done.stderr.decode(errors="replace")) or f"{command[0]} failed")
    return done.stdout


def _complaint(text: str) -> str:
    """Return what a program said was wrong, without what it puts around it; kubectl may say it as a line of a log."""
    import re

    logged = re.search(r' err="((?:[^"\\]|\\.)*)"', text)
    if logged:
        return re.sub(r"\\(.)", r"\1", logged[1])
    return text.strip().removeprefix("error: ").removeprefix("Error: ")


# texts to objects


def parse_objects(text: bytes, name: str) -> list[Obj]:
    """Return the objects of a YAML or JSON text that came from the file `name`."""
    return [obj for document in _documents(text, name) for obj in _objects(document, name)]


def _documents(text: bytes, name: str) -> list[Any]:
    if text.startswith(b"\xef\xbb\xbf"):
        text = text[3:]
    if not text.lstrip().startswith(b"{"):
        return _yaml_documents(text, name)
    try:
        return _json_documents(text)
    except ValueError as wrong:
        try:
            return _yaml_documents(text, name)
        except connect.Failure:
            raise connect.failure(f"error parsing {name}: {wrong}") from wrong


def _json_documents(text: bytes) -> list[Any]:
    """JSON values one after another; ValueError has the line."""
    import orjson

    try:
        return [orjson.loads(text)]
    except orjson.JSONDecodeError:
        pass
    import json

    decoder, rest = json.JSONDecoder(), text.decode()
    found, place = [], 0
    while place < len(rest):
        if rest[place].isspace():
            place += 1
            continue
        try:
            value, place = decoder.raw_decode(rest, place)
        except json.JSONDecodeError as error:
            if not rest[error.pos :].strip():
                raise ValueError("unexpected EOF") from error
            raise ValueError(f"json: line {error.lineno}: {error.msg}") from error
        except RecursionError as error:
            raise ValueError("json: exceeded max depth") from error
        found.append(value)
    return found


def _yaml_documents(text: bytes, name: str) -> list[Any]:
    import re

    from karmada.kube.schema.yamlio import load_all

    documents: list[Any] = []
    line = 0
    for part in re.split(rb"(?m)^(?=---(?:\s|$))", text):
        try:
            documents += load_all(part)
        except ValueError as error:
            wrong = re.sub(r"yaml: line (\d+)", lambda found: f"yaml: line {int(found[1]) + line}", str(error))  # noqa: B023
            raise connect.failure(f"error parsing {name}: {wrong}") from error
        line += part.count(b"\n")
    return documents


def _is_too_deep(value: Any) -> bool:
    """Return whether it could not be written again; how deep Python's own parser goes depends on its version."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [child for one in level for child in _children(one)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _objects(document: Any, name: str) -> Iterator[Obj]:
    if _is_too_deep(document):
        raise connect.failure(f"error parsing {name}: json: exceeded max depth")
    if not isinstance(document, dict):
        kind = _GO_TYPES.get(type(document), type(document).__name__)
        raise connect.failure(
            f'unable to decode "{name}": json: cannot unmarshal {kind} into Go value of type unstructured.detector'
        )
    if not isinstance(document.get("kind"), str) or not document["kind"]:
        import orjson

        shown = orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()
        raise connect.failure(f"unable to decode \"{name}\": Object 'Kind' is missing in '{shown}'")
    if not isinstance(document.get("apiVersion"), str) or not document["apiVersion"]:
        raise connect.failure(
            f'error validating "{name}": error validating data: apiVersion not set; '
            "if you choose to ignore these errors, turn validation off with --validate=false"
        )
    if not isinstance(document.get("metadata") or {}, dict):
        raise connect.failure(f'unable to decode "{name}": metadata is not an object')
    items = document.get("items")
    if not isinstance(items, list):
        yield document
        return
    singular = {"apiVersion": document["apiVersion"], "kind": document["kind"].removesuffix("List")}
    for item in items:  # lists of a kind need not say it in every item
        if isinstance(item, dict) and document["kind"] != "List":
            item = {**singular, **item}
        yield from _objects(item, name)
