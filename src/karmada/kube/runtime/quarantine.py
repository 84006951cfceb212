"""Keys that hung the event loop: after the restart they are left alone until their object changes.

When the watchdog ends a process, it notes here which key was being reconciled, or which object was being delivered to
which controller; the next process reads it (`load`). A controller parks such a key (see WorkQueue.park) and does not
take such an object until what they are about is not as it was, or until they are released. When three of a controller
hung the loop within ten minutes, more would follow: then all of its keys are parked until somebody releases them.

There is one quarantine in a process, as there is one event loop to hang.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import orjson

from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.current_work import Work
from karmada.kube.runtime.logging import get_logger

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Follow: TypeAlias = Callable[["Entry", bool], None]
"""Is called with an entry that was added (True) or released (False)."""
WHOLE: Final = "*"
"""In place of a key: all keys of a controller."""
_TOO_MANY, _WITHIN_SECONDS = 3, 600.0

log = get_logger("quarantine")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What is left alone, and why."""

    controller: str
    key: str
    """A key as its controller logs it; or a resource and the key of an object, which is not delivered; or WHOLE."""
    fingerprint: str = ""
    """Of the object that it is about; empty if that is not known: then only a release ends it."""
    at: float = 0.0
    seconds: float = 0.0
    """For how long the event loop hung."""
    stack: str = ""
    object: Obj = {}
    """Kind, name and uid of what it is about; empty if that is not known."""
    published: bool = False
    """Others see it, too, and release it by removing what they see (see components/quarantine_keeper)."""

    @property
    def since(self) -> str:
        return rfc3339(self.at)

    @property
    def name(self) -> tuple[str, str]:
        return self.controller, self.key


class _File(msgspec.Struct, frozen=True):
    entries: list[Entry]


def _read(content: bytes) -> list[Entry]:
    if not content:
        return []
    try:
        return msgspec.json.decode(content, type=_File).entries
    except msgspec.MsgspecError as error:
        log.error("The quarantine file cannot be read, nothing is left alone", error)
        return []


def fingerprint(*objects: Obj | None) -> str:
    """Return what changes with everything in these objects but their status, versions and managedFields."""
    text = orjson.dumps([obj and _settled(obj) for obj in objects], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _settled(obj: Obj) -> Obj:
    left_out = ("resourceVersion", "managedFields", "generation")
    metadata = {name: value for name, value in obj["metadata"].items() if name not in left_out}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": metadata}


def _reference(obj: Obj | None) -> Obj:
    if obj is None:
        return {}
    metadata = {name: obj["metadata"][name] for name in ("namespace", "name", "uid") if name in obj["metadata"]}
    return {"apiVersion": obj.get("apiVersion") or "", "kind": obj.get("kind") or "", "metadata": metadata}


class Held:
    """The part of the quarantine that is one controller's; empty as long as nothing of it hung the loop."""

    def __init__(self, controller: str, release: Callable[[Entry], None]) -> None:
        self.controller = controller
        self.entries: dict[str, Entry] = {}
        self._followers: list[Callable[[], None]] = []
        self._release = release

    def __bool__(self) -> bool:
        return bool(self.entries)

    def holds(self, key: str, now: Callable[[], str]) -> bool:
        """Return whether a key is to be left alone; it is released if its object's fingerprint is another one now."""
        entry = self.entries.get(key)
        if entry is not None and entry.fingerprint and now() not in ("", entry.fingerprint):
            self._release(entry)
            entry = None
        return entry is not None or WHOLE in self.entries

    def changed(self, *keys: str) -> None:
        """Release these keys, if they are held: their object has changed."""
        for key in keys:
            if key in self.entries:
                self._release(self.entries[key])

    def follow(self, take_up: Callable[[], None]) -> Callable[[], None]:
        """Call this when something was released; returns a function that ends that."""
        self._followers.append(take_up)
        return lambda: self._followers.remove(take_up)

    def released(self) -> None:
        for take_up in list(self._followers):
            take_up()


class Quarantine:
    """The quarantine of a process; a collector of Prometheus."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or RealClock()
        self._held: dict[str, Held] = {}
        self._write: Callable[[bytes], None] | None = None
        self._saving = threading.Lock()
        self._followers: list[Follow] = []

    # file

    def load(self, content: bytes, write: Callable[[bytes], None]) -> None:
        """Hold what a file says; `write` replaces its content, from whichever thread."""
        self._write = write
        for entry in _read(content):
            self._of(entry).entries[entry.key] = entry
            log.warning("Left alone, since it hung the event loop", controller=entry.controller, key=entry.key)

    @property
    def kept(self) -> bool:
        """Return whether there is a file."""
        return self._write is not None

    def save(self) -> None:
        with self._saving:
            if self._write is not None:
                self._write(msgspec.json.encode(_File(self.entries())))

    def _save_aside(self) -> None:
        """On a thread of its own: it waits for the disk."""
        if self.kept:
            threading.Thread(target=self.save, name="quarantine file").start()

    # entries

    def entries(self) -> list[Entry]:
        return [entry for held in list(self._held.values()) for entry in list(held.entries.values())]

    def of(self, controller: str) -> Held:
        """Return what is held of a controller: the same object from now on."""
        held = self._held.get(controller)
        if held is None:
            held = self._held[controller] = Held(controller, self.release)
        return held

    def _of(self, entry: Entry) -> Held:
        return self.of(entry.controller)

    def add(self, entry: Entry) -> None:
        """Hold an entry from now on, unless it is held already."""
        held = self._of(entry)
        if entry.key not in held.entries:
            held.entries[entry.key] = entry
            self._notify(entry, added=True)

    def note_published(self, entry: Entry) -> None:
        """Note that others see an entry, if it is held still."""
        held = self._of(entry).entries
        if held.get(entry.key) == entry and not entry.published:
            held[entry.key] = msgspec.structs.replace(entry, published=True)
            self._save_aside()

    def release(self, entry: Entry) -> None:
        """Hold an entry no longer; its controller takes up its keys again."""
        held = self._of(entry)
        if held.entries.pop(entry.key, None) is None:
            return
        log.info("Released from quarantine", controller=entry.controller, key=entry.key)
        self._notify(entry, added=False)
        held.released()

    def follow(self, call: Follow) -> Callable[[], None]:
        """Call this with every entry that is added or released; returns a function that ends that."""
        self._followers.append(call)
        return lambda: self._followers.remove(call)

    def _notify(self, entry: Entry, *, added: bool) -> None:
        self._save_aside()
        for call in list(self._followers):
            call(entry, added)

    # hangs

    def blame(self, work: Sequence[Work], seconds: float, stack: str) -> None:
        """Note what hung the event loop, for the next process; on the thread of the watchdog."""
        guilty = next((one for one in work if one.controller and one.name), None)
        if guilty is None:
            return
        controller, at = guilty.controller, self._clock.now()
        entries = self.of(controller).entries
        hung = Entry(controller=controller, key=guilty.name, at=at, seconds=round(seconds, 1), stack=stack)
        entries[hung.key] = hung
        if sum(at - entry.at < _WITHIN_SECONDS for entry in entries.values()) >= _TOO_MANY:
            entries[WHOLE] = msgspec.structs.replace(hung, key=WHOLE)
        self.save()
        self._add_details(hung, guilty)

    def _add_details(self, hung: Entry, guilty: Work) -> None:
        """Note of what object it is, which is read from a cache that the hanging loop may be changing."""
        try:
            now, about = guilty.fingerprint(), _reference(guilty.about())
        except Exception as error:  # noqa: BLE001 - what matters is saved
            log.error("The object is not known", error, controller=hung.controller, key=hung.key)
            return
        entries = self.of(hung.controller).entries
        entries[hung.key] = msgspec.structs.replace(hung, fingerprint=now, object=about)
        self.save()

    def collect(self) -> Iterable[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        text = "Keys that are left alone because they hung the event loop"
        family = GaugeMetricFamily("controller_quarantined_keys", text, labels=["controller"])
        for controller, held in sorted((controller, held) for controller, held in self._held.items() if held):
            family.add_metric([controller], len(held.entries))
        yield family


QUARANTINE = Quarantine()
