"""What a store needs regularly: history older than five minutes is compacted away.

Each round compacts up to the revision that was the latest one round ago, so clients can always watch from, and page
through, what they saw in the last interval. A store that is unavailable is left for the next round.
"""

from __future__ import annotations

import logging

from karmada.kube.objects.clock import Clock
from karmada.kube.server.storage.interface import Compacted, Store, StoreUnavailable

INTERVAL = 300.0
log = logging.getLogger(__name__)


async def maintain(store: Store, clock: Clock, *, interval: float = INTERVAL) -> None:
    """Compact until it is cancelled."""
    while True:
        seen = store.revision
        await clock.sleep(interval)
        try:
            await store.compact(seen)
        except Compacted as e:
            log.debug("revision %d was compacted by another server, up to %d", seen, e.revision)
        except StoreUnavailable as e:
            log.warning("compaction failed, trying again in %.0f s: %s", interval, e)
