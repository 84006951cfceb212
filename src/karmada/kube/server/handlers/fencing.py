"""Refuses writes whose sender worked under a Lease that is over (see kube/client/fencing).

The Lease is compared when the request comes in, and again right before its change is handed to the store: nothing is
awaited between the two, and the store keeps the order in which it is given changes. So a write that was allowed is
before every write of whoever took over after seeing the Lease change. With several servers on one etcd a server may
know of that change a moment later than the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from karmada.kube.client.fencing import HEADER, FencingToken
from karmada.kube.objects import meta
from karmada.kube.objects.errors import BadRequest, Fenced
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.watchcache.cache import Cache

_LEASES: Final = GroupResource("coordination.k8s.io", "leases")
_SENT_UNDER: ContextVar[FencingToken | None] = ContextVar("sent_under", default=None)


def refusal(token: FencingToken, lease: Obj | None) -> str:
    """Why a write under this Lease is refused; "" when it is not."""
    if lease is None or meta.uid(lease) != token.uid:
        return "it is gone"
    epoch = (lease.get("spec") or {}).get("leaseTransitions") or 0
    return "" if epoch == token.epoch else f"its epoch is {epoch} and no longer {token.epoch}"


class Fencing:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self.refused = 0
        """How many writes were refused."""

    @contextmanager
    def under(self, header: str) -> Iterator[None]:
        """Handle a request that was sent with this header."""
        try:
            token = FencingToken.parse(header)
        except ValueError:
            raise BadRequest(f"{HEADER}: must be NAMESPACE/NAME/UID/EPOCH of a Lease") from None
        before = _SENT_UNDER.set(token)
        try:
            yield
        except Fenced:
            self.refused += 1
            raise
        finally:
            _SENT_UNDER.reset(before)

    def check(self) -> None:
        """Fenced when the request that is being handled was sent under a Lease that is over."""
        token = _SENT_UNDER.get()
        if token is None:
            return
        why = refusal(token, self._cache.get(_LEASES, token.namespace, token.name))
        if why:
            raise Fenced(f"the sender's Lease {token.namespace}/{token.name} does not allow this write: {why}")
