"""Pods and containers from POD, TYPE/NAME or a label selector.

A workload stands for its pods. Where one of several is needed, the order decides: for logs the one with most output,
for a shell the healthiest. The default container and the message about it are kubectl's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.kube.client.client import Client
    from karmada.kube.objects.gvk import GVR
    from karmada.kube.objects.types import Obj

    Order = Callable[[Obj], tuple[Any, ...]]

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
COMPLETED = ("Succeeded", "Failed")
_WITH_LABEL_SELECTOR = frozenset(
    {("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("apps", "Deployment"), ("batch", "Job")}
)
_WITH_MAP = frozenset({("", "ReplicationController"), ("", "Service")})
_LATER_THAN_ALL = float("inf")


def pods_gvr() -> GVR:
    from karmada.kube.objects.gvk import GVR

    return GVR("", "v1", "pods")


def require_time(seconds: float) -> None:
    if seconds <= 0:
        raise connect.usage("--pod-running-timeout must be higher than zero")


# what is named


async def named_object(session: Session, word: str) -> Obj:
    """POD or TYPE/NAME, as the server has it."""
    if "/" not in word:
        connect.check_name(word)
        return await session.get(pods_gvr(), word, session.namespace)
    if word.count("/") > 1:
        raise connect.failure("arguments in resource/name form may not have more than one slash")
    from karmada.cli.targeting.resources import parse_targets

    kind, _, name = word.partition("/")
    connect.check_name(name)
    if kind in ("pod", "pods", "po") and name:  # worth no discovery
        return await session.get(pods_gvr(), name, session.namespace)
    [target] = parse_targets(await session.client.mapper.catalog(), [word], session.namespace)
    return await session.get(target.mapping.gvr, target.name, target.namespace)


def pod_selector(obj: Obj, doing: str) -> str:
    """Return the selector of a workload's pods; `doing` begins what is said of an object that has none."""
    from karmada.kube.objects.gvk import GVK
    from karmada.kube.objects.selectors import labels_from, labels_from_map

    group, version, kind = GVK.parse(obj["apiVersion"], obj["kind"])
    spec = obj.get("spec") or {}
    if (group, kind) in _WITH_LABEL_SELECTOR:
        return str(labels_from(spec.get("selector")))
    if (group, kind) not in _WITH_MAP:
        raise connect.failure(f"{doing} *{version}.{kind}: selector for *{version}.{kind} not implemented")
    if not spec.get("selector"):
        name = obj["metadata"]["name"]
        raise connect.failure(
            f"{doing} *{version}.{kind}: invalid {kind.lower()} '{name}': {kind} is defined without a selector"
        )
    return str(labels_from_map(spec["selector"]))


async def pods_of(session: Session, obj: Obj, order: Order, seconds: float, doing: str) -> list[Obj]:
    """Return the pod itself, or those of the workload, the best first; waits for one to come when there is none."""
    if obj["kind"] == "Pod":
        return [obj]
    selector = pod_selector(obj, doing)
    namespace = obj["metadata"].get("namespace", "")
    items, version = await session.client.list_all(pods_gvr(), namespace, label_selector=selector)
    if items:
        return sorted(items, key=order)
    return [await _first_to_come(session.client, namespace, selector, version, seconds)]


async def _first_to_come(client: Client, namespace: str, selector: str, version: str, seconds: float) -> Obj:
    import asyncio

    timed_out = connect.failure("timed out waiting for the condition")
    try:
        async with asyncio.timeout(seconds):
            events = await client.watch(
                pods_gvr(), namespace, label_selector=selector, resource_version=version, bookmarks=False
            )
            async for event, pod in events:
                if event in ("ADDED", "MODIFIED"):
                    return pod
    except TimeoutError:
        raise timed_out from None
    raise connect.failure("watch closed before UntilWithoutRetry timeout")


async def cluster_hint(control: Session, word: str, *, otherwise: str = "") -> str:
    """Return the --cluster that POD or TYPE/NAME needs, from a look into the members; `otherwise`: another way."""
    from karmada.cli.targeting.session import chosen_members, from_each
    from karmada.kube.objects.errors import NotFound

    async def has(member: Session) -> bool:
        try:
            await named_object(member, word)
        except (NotFound, connect.Failure):
            return False
        return True

    found, _ = await from_each(control, await chosen_members(control), has, named=())
    clusters = [cluster for cluster, there in found.items() if there]
    where = ", ".join(clusters) or "none of the members that could be read"
    hint = f"add --cluster {clusters[0] if clusters else 'NAME'}{otherwise}"
    return hint if len(clusters) == 1 else f"{hint}; {word} is in {where}"


# which pod


def best_to_read(pod: Obj) -> tuple[Any, ...]:
    """Return the sort key of a container: where something runs, runs longest, and has failed most often comes first."""
    phases = {"Unknown": 1, "Pending": 2}
    ready = _ready_since(pod)
    return (
        not _assigned(pod),
        phases.get(_phase(pod), 0),
        ready is None,
        _or_last(ready),
        -_restarts(pod),
        _or_last(_created(pod)),
    )


def best_to_enter(pod: Obj) -> tuple[Any, ...]:
    """Return the sort key: running, not terminating, ready longest, with the fewest restarts."""
    phases = {"Running": 0, "Unknown": 1}
    ready = _ready_since(pod)
    leaving = _moment(pod["metadata"].get("deletionTimestamp"))
    return (
        not _assigned(pod),
        phases.get(_phase(pod), 2),
        ready is None,
        leaving is not None,
        -(leaving or 0.0),
        _or_last(ready),
        _restarts(pod),
        _or_last(_created(pod)),
    )


def _assigned(pod: Obj) -> bool:
    return bool((pod.get("spec") or {}).get("nodeName"))


def _phase(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _ready_since(pod: Obj) -> float | None:
    from karmada.kube.objects.meta import get_condition

    ready = get_condition((pod.get("status") or {}).get("conditions"), "Ready")
    if ready is None or ready.get("status") != "True":
        return None
    return _moment(ready.get("lastTransitionTime")) or _LATER_THAN_ALL


def _created(pod: Obj) -> float | None:
    return _moment(pod["metadata"].get("creationTimestamp"))


def _moment(text: str | None) -> float | None:
    from karmada.kube.objects.times import parse_time

    return parse_time(text) if text else None


def _or_last(moment: float | None) -> float:
    return _LATER_THAN_ALL if moment is None else moment


def _restarts(pod: Obj) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((status.get("restartCount", 0) for status in statuses), default=0)


# which container


class Containers(NamedTuple):
    """A pod's containers by their sort."""

    init: list[Obj]
    main: list[Obj]
    ephemeral: list[Obj]

    @classmethod
    def of(cls, pod: Obj) -> Containers:
        spec = pod["spec"]
        return cls(*(spec.get(part) or [] for part in ("initContainers", "containers", "ephemeralContainers")))

    def find(self, name: str) -> Obj | None:
        return next((one for part in self for one in part if one["name"] == name), None)

    @property
    def names(self) -> str:
        """As a person may choose from."""
        ephemeral = [f"{one['name']} (ephem)" for one in self.ephemeral]
        init = [f"{one['name']} (init)" for one in self.init]
        return ", ".join([*(one["name"] for one in self.main), *ephemeral, *init])

    @property
    def several(self) -> bool:
        return sum(map(len, self)) > 1


def preferred(pod: Obj) -> str:
    """Return the container that the pod itself says is the one to take; "" if it says nothing."""
    return str((pod["metadata"].get("annotations") or {}).get(DEFAULT_CONTAINER, ""))


def defaulted(pod: Obj, notify: Callable[[str], None]) -> str:
    """Return the first container; the others are listed when there are several."""
    containers = Containers.of(pod)
    name = str(containers.main[0]["name"])
    if containers.several:
        notify(f'Defaulted container "{name}" out of: {containers.names}')
    return name


def chosen_container(pod: Obj, name: str, notify: Callable[[str], None]) -> Obj:
    """Return the named container, or the pod's preferred, or its first."""
    containers = Containers.of(pod)
    if not name:
        found = containers.find(preferred(pod)) or containers.find(defaulted(pod, notify))
    else:
        found = containers.find(name)
    if found is None:
        raise connect.failure(f"container {name} not found in pod {pod['metadata']['name']}")
    return found


def not_completed(pod: Obj, refusal: str) -> None:
    """Failure for a pod in which nothing will ever run again."""
    if _phase(pod) in COMPLETED:
        raise connect.failure(f"{refusal}; current phase is {_phase(pod)}")


def to_stderr(text: str) -> None:
    click.echo(text, err=True)


def silence(_text: str) -> None:
    return


def notifier(quiet: bool) -> Callable[[str], None]:
    return silence if quiet else to_stderr


async def pod_from(session: Session, word: str, filenames: Sequence[str], seconds: float) -> Obj:
    """Return the pod to enter: of POD or TYPE/NAME, or of the one object that is in a file."""
    if filenames:
        from karmada.cli.targeting.files import read_files

        sources = read_files(filenames)
        if len(sources) + bool(word) > 1:
            raise connect.failure("cannot exec into multiple objects at a time")
        if not sources:
            raise connect.failure("no objects passed to exec")
        [source] = sources
        gvr = await session.client.resource_of(source.obj)
        metadata = source.obj["metadata"]
        obj = await session.get(gvr, metadata["name"], metadata.get("namespace") or session.namespace)
    else:
        obj = await named_object(session, word)
    [pod, *_] = await pods_of(session, obj, best_to_enter, seconds, "cannot attach to")
    return pod
