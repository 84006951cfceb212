"""Static files, ours and the vendored ones: read once, served under their hash, so that browsers keep them."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

FOLDERS: Final = {"static": Path(__file__).parent / "static", "vendor": Path(__file__).parent / "vendor"}
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_COMPRESSED_FROM: Final = 1024


@dataclass(frozen=True)
class Asset:
    name: str
    content_type: str
    content: bytes

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:16]

    @cached_property
    def compressed(self) -> bytes | None:
        """Return None when it is not worth it."""
        return gzip.compress(self.content, 6, mtime=0) if len(self.content) >= _COMPRESSED_FROM else None

    @property
    def url(self) -> str:
        return f"/assets/{self.digest}/{self.name}"


class Assets:
    """The files that pages load, by name, such as `static/dashboard.css` or `vendor/htmx.min.js`."""

    def __init__(self) -> None:
        self._assets: dict[str, Asset] = {}
        for folder, path in FOLDERS.items():
            for file in sorted(path.iterdir()):
                if file.suffix in _TYPES:
                    name = f"{folder}/{file.name}"
                    self._assets[name] = Asset(name, _TYPES[file.suffix], file.read_bytes())

    def url(self, name: str) -> str:
        """Return the URL of a file; KeyError for one that is not there: a page that names it is wrong."""
        return self._assets[name].url

    def find(self, digest: str, name: str) -> Asset | None:
        asset = self._assets.get(name)
        return asset if asset is not None and asset.digest == digest else None
