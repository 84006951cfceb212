"""Client of the admin API of a fleet in another process; imports little, since the command line imports it."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

ADMIN_FILE = "admin.json"


class AdminError(Exception):
    """The fleet returned an error, or none is running."""


class AdminClient:
    """Client of the admin API of a running fleet, for other processes; needs no event loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def running(self) -> bool:
        """Return whether a fleet is running in this folder."""
        try:
            self.request("GET", "/clusters")
        except AdminError:
            return False
        return True

    def request(self, method: str, path: str, body: object = None, *, timeout: float = 120.0) -> Any:
        try:
            about = json.loads((self._folder / ADMIN_FILE).read_bytes())
        except FileNotFoundError:
            raise AdminError(f"no simulated clusters run in {self._folder}") from None
        request = urllib.request.Request(
            about["url"] + urllib.parse.quote(path, safe="/?=&%"),
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {about['token']}", "Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AdminError(json.load(error)["error"]) from None
        except OSError as error:
            raise AdminError(f"the simulated clusters of {self._folder} do not respond: {error}") from None
