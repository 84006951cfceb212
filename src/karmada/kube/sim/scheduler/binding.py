"""From a decision to a bound pod: get its volumes bound, then bind it; undo the decision if either fails.

Between the decision and the moment the informer shows the pod on its node it is "assumed". A pod whose volumes are not
bound yet waits without a task: every change of one of its claims triggers a check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError, Conflict, NotFound
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import SCHEDULER, Context
from karmada.kube.sim.scheduler.outbox import Outbox
from karmada.kube.sim.scheduler.pods import PodInfo
from karmada.kube.sim.scheduler.reporting import Reporter
from karmada.kube.sim.scheduler.timers import Timers
from karmada.kube.sim.scheduler.volumes import NO_VOLUMES, VolumeChoice, Volumes

_VOLUME_SECONDS = 600.0
_PRE_BIND = 'running PreBind plugin "VolumeBinding": '


@dataclass(slots=True, eq=False)
class _Assumed:
    info: PodInfo
    node: str
    choice: VolumeChoice
    versions: dict[Key, int] = field(default_factory=dict)
    waiting: bool = False


class Binder:
    """`undone(info, why)` is called after a decision was taken back; `why` is empty where no event is needed."""

    def __init__(
        self,
        context: Context,
        volumes: Volumes,
        reporter: Reporter,
        outbox: Outbox,
        timers: Timers,
        undone: Callable[[PodInfo, str], None],
    ) -> None:
        self._client = context.client(SCHEDULER)
        self._volumes = volumes
        self._reporter = reporter
        self._outbox = outbox
        self._timers = timers
        self._undone = undone
        self._assumed: dict[Key, _Assumed] = {}
        self._by_claim: dict[Key, dict[Key, None]] = {}

    def __contains__(self, key: Key) -> bool:
        """Decided, but not seen on its node yet."""
        return key in self._assumed

    def __len__(self) -> int:
        return len(self._assumed)

    def bind(self, info: PodInfo, node: str, choice: VolumeChoice, delay: float) -> None:
        self._volumes.reserve(choice)
        assumed = self._assumed[info.key] = _Assumed(info, node, choice)
        self._outbox.send(partial(self._start, assumed), delay)

    def seen(self, key: Key) -> None:
        """Forget a pod that is on its node, or gone: there is nothing to wait for or to undo any more."""
        assumed = self._assumed.pop(key, None)
        if assumed is not None:
            self._volumes.forget(assumed.choice)
            self._stop_waiting(assumed)

    def _is_current(self, assumed: _Assumed) -> bool:
        return self._assumed.get(assumed.info.key) is assumed

    async def _start(self, assumed: _Assumed) -> None:
        if not self._is_current(assumed):
            return
        if assumed.choice == NO_VOLUMES:
            await self._bind(assumed)
            return
        try:
            assumed.versions = await self._volumes.carry_out(assumed.choice, assumed.node)
        except (ApiError, ConnectionFailed) as error:
            self._undo(assumed, f"{_PRE_BIND}{_text(error)}")
            return
        if self._is_current(assumed):
            self._wait(assumed)

    # volumes

    def _wait(self, assumed: _Assumed) -> None:
        assumed.waiting = True
        for key in self._claims(assumed):
            self._by_claim.setdefault(key, {})[assumed.info.key] = None
        self._timers.after(_VOLUME_SECONDS, partial(self._too_late, assumed))
        self._check_claims(assumed)

    @staticmethod
    def _claims(assumed: _Assumed) -> list[Key]:
        return [Key(assumed.info.key.namespace, claim.name) for claim in assumed.info.claims]

    def _stop_waiting(self, assumed: _Assumed) -> None:
        if assumed.waiting:
            assumed.waiting = False
            for key in self._claims(assumed):
                pods = self._by_claim.get(key, {})
                pods.pop(assumed.info.key, None)
                if not pods:
                    self._by_claim.pop(key, None)

    def claim_changed(self, key: Key) -> None:
        for pod in tuple(self._by_claim.get(key, ())):
            self._check_claims(self._assumed[pod])

    def _check_claims(self, assumed: _Assumed) -> None:
        if self._volumes.all_bound(assumed.info):
            self._stop_waiting(assumed)
            self._outbox.send(partial(self._bind, assumed))
            return
        claim = self._volumes.given_up(assumed.versions, assumed.node)
        if claim:
            self._undo(assumed, f'{_PRE_BIND}binding volumes: provisioning failed for PVC "{claim}"')

    def _too_late(self, assumed: _Assumed) -> None:
        if assumed.waiting and self._is_current(assumed):
            self._undo(assumed, f"{_PRE_BIND}binding volumes: context deadline exceeded")

    # the binding itself

    async def _bind(self, assumed: _Assumed) -> None:
        if not self._is_current(assumed):
            return
        info = assumed.info
        binding: Obj = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": info.key.namespace, "name": info.key.name, "uid": info.uid},
            "target": {"kind": "Node", "name": assumed.node},
        }
        try:
            await self._client.create_subresource(PODS, info.key.name, info.key.namespace, "binding", binding)
        except (NotFound, Conflict):
            self._undo(assumed, "")  # gone, going, or placed by somebody else: the informer will report it
        except (ApiError, ConnectionFailed) as error:
            self._undo(assumed, f'binding rejected: running Bind plugin "DefaultBinder": {_text(error)}')
        else:
            self._reporter.scheduled(info)

    def _undo(self, assumed: _Assumed, why: str) -> None:
        if self._is_current(assumed):
            self.seen(assumed.info.key)
            self._undone(assumed.info, why)

    def clear(self) -> None:
        self._assumed.clear()
        self._by_claim.clear()


def _text(error: Exception) -> str:
    return error.message if isinstance(error, ApiError) else str(error)
