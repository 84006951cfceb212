"""The smallest change that fits, by trying.

Of several knobs at once each, the last first, is made as small as the others allow, 0 if it is not needed; then it is
verified that one step less of any of them does not fit. Nothing is known of the rules here: whether something fits is a
function that is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from karmada.scheduler.fitting.changes import Change
from karmada.scheduler.fitting.knobs import Knob, Sizes, changes_of

SCANNED = 16
"""Up to so many sizes are tried one by one, as a larger change need not fit where a smaller one does."""

Fits = Callable[[Sequence[Change]], bool]


def smallest(knobs: Sequence[Knob], fits: Fits, *, halvings: int = 0) -> Sizes | None:
    """Return sizes that fit, of which none can be one less; None when no size that was tried fits.

    The limits are tried, and, as the largest change need not fit where a smaller one does, so many times half of them.
    """
    if len(knobs) == 1 and knobs[0].limit <= SCANNED:
        return next(((size,) for size in range(1, knobs[0].limit + 1) if fits((knobs[0].make(size),))), None)
    tried = dict.fromkeys(tuple(max(knob.limit >> times, 1) for knob in knobs) for times in range(halvings + 1))
    sizes = next((sizes for sizes in tried if fits(changes_of(knobs, sizes))), None)
    if sizes is None:
        return None
    before: Sizes = ()
    while sizes != before:
        before = sizes
        for place in reversed(range(len(knobs))):
            sizes = _lowered(knobs, sizes, place, fits)
    return sizes


def _lowered(knobs: Sequence[Knob], sizes: Sizes, place: int, fits: Fits) -> Sizes:
    """Return the sizes with one of them as small as it can be: it fits, and one less does not."""

    def with_size(size: int) -> Sizes:
        return (*sizes[:place], size, *sizes[place + 1 :])

    def fit(size: int) -> bool:
        changes = changes_of(knobs, with_size(size))
        return bool(changes) and fits(changes)

    low, high = 0, sizes[place]
    if not high or not fit(high - 1):
        return sizes
    high -= 1
    if not high or fit(low):
        return with_size(0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fit(middle) else (middle, high)
    return with_size(high)
