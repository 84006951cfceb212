"""The keys of an OpenID Connect issuer: found by its discovery document, kept, and fetched again when they change.

A token with an unknown key id makes them be fetched again, since that is how a rotation shows, but not more often than
every few seconds: anybody can send such tokens. Known keys are refreshed after a while without anybody waiting for it,
so a withdrawn key is forgotten, and an issuer that is down does not shut out those whose keys are known.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import orjson
from yarl import URL

from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.auth.jwk import Jwk, parse_jwk
from karmada.kube.server.auth.jwt import TokenError
from karmada.kube.server.outbound.https import Outbound, Trust

DISCOVERY = "/.well-known/openid-configuration"
AGAIN_SECONDS = 10.0
FRESH_SECONDS = 3600.0
_FETCH_SECONDS = 10.0
_MOST_BYTES = 1 << 20
log = get_logger("oidc")


class IssuerKeys:
    def __init__(self, issuer: str, ca_pem: bytes, clock: Clock) -> None:
        self._issuer = issuer
        self._trust = Trust(ca_pem)
        self._clock = clock
        self._outbound = Outbound()
        self._keys: tuple[Jwk, ...] = ()
        self._fetched = self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, kid: str) -> list[Jwk]:
        """Return the keys that a token with this id may be signed with (all without one); TokenError if none is."""
        now = self._clock.monotonic()
        found = self._matching(kid)
        due = now - self._tried >= AGAIN_SECONDS
        if found:
            if due and now - self._fetched >= FRESH_SECONDS:
                self._start()
            return found
        if due or self._fetching is not None:
            await asyncio.shield(self._start())
            found = self._matching(kid)
        if not found:
            raise TokenError("oidc: the token is signed with a key that the issuer does not publish")
        return found

    def _matching(self, kid: str) -> list[Jwk]:
        return [key for key in self._keys if not kid or key.kid == kid]

    def _start(self) -> asyncio.Task[None]:
        """Return the fetch under way, or a new one; it never fails."""
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._refresh(), name="keys of an issuer")
        return self._fetching

    async def _refresh(self) -> None:
        self._tried = self._clock.monotonic()
        try:
            self._keys = await self._fetch()
            self._fetched = self._clock.monotonic()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            log.error("Keys of the OpenID Connect issuer cannot be fetched", error, issuer=self._issuer)
        finally:
            self._fetching = None

    async def _fetch(self) -> tuple[Jwk, ...]:
        document = await self._get(self._issuer.rstrip("/") + DISCOVERY)
        if document.get("issuer") != self._issuer:
            raise ValueError(f"the discovery document is that of {document.get('issuer')!r}")
        place = document.get("jwks_uri")
        if not isinstance(place, str) or not place.startswith("https://"):
            raise ValueError("the discovery document has no jwks_uri with https")
        listed = (await self._get(place)).get("keys")
        return tuple(key for jwk in listed or () if (key := parse_jwk(jwk)) is not None)

    async def _get(self, url: str) -> dict[str, Any]:
        headers = (("Accept", "application/json"), ("User-Agent", "kube-apiserver"))
        call = self._outbound.send("GET", URL(url), self._trust, headers=headers, seconds=_FETCH_SECONDS)
        async with call as response:
            body = await response.content.read(_MOST_BYTES)
            while not response.content.at_eof() and len(body) < _MOST_BYTES:
                body += await response.content.read(_MOST_BYTES)
        if response.status != 200:
            raise ValueError(f"{url} returned status {response.status}")
        document = orjson.loads(body)
        if not isinstance(document, dict):
            raise ValueError(f"{url} returned no JSON object")
        return document

    async def close(self) -> None:
        if self._fetching is not None:
            await cancel_and_wait(self._fetching)
        await self._outbound.close()
