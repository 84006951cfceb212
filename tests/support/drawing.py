"""What hypothesis draws: the same in every run, unless a run wants other examples.

A test draws from a seed made from its own source, so a commit that passed passes again. hypothesis also draws constants
from the modules that happen to be loaded: the examples would depend on the tests that ran before and on every edit
anywhere. `--hypothesis-profile=random --hypothesis-seed=N` draws others (`make test SEED=N`).
"""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers


def register_profiles() -> None:
    common = settings(
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        phases=[phase for phase in Phase if phase is not Phase.explain],  # it traces every line of what fails
    )
    settings.register_profile("random", common)
    settings.register_profile("fixed", common, derandomize=True)
    settings.load_profile("fixed")


def ignore_constants() -> None:
    """Reading them takes 3 s of CPU time besides, in each worker."""
    none = providers._local_constants
    providers._get_local_constants = lambda: none
