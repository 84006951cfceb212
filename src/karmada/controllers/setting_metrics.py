"""The settings of the controllers as a metric, so that predictions use those of the running control plane."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from karmada.controllers.context import Settings

if TYPE_CHECKING:
    from prometheus_client.core import Metric

NAME: Final = "karmada_controller_setting_info"


class SettingMetrics:
    """A metrics collector: one series for each setting, with its flag and its value as labels."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(NAME, "A setting of the controllers; the value is 1", labels=["flag", "value"])
        for flag, value in shown(self._settings).items():
            family.add_metric([flag, value], 1)
        yield family


def shown(settings: Settings) -> dict[str, str]:
    """Values by flag, as the command line has them; times in seconds."""
    found = {field.name.replace("_", "-"): getattr(settings, field.name) for field in fields(Settings)}
    return {flag: ",".join(value) if isinstance(value, tuple) else _text(value) for flag, value in found.items()}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def read(values: Mapping[str, str]) -> Settings:
    """Return settings by flag; ValueError for a flag that is none, or a value of another type."""
    defaults = Settings()
    known = {field.name.replace("_", "-"): field.name for field in fields(Settings)}
    given = {}
    for flag, text in values.items():
        if flag not in known:
            raise ValueError(f"{flag} is not a flag of the controllers (known: {', '.join(known)})")
        given[known[flag]] = _parsed(flag, text, getattr(defaults, known[flag]))
    return Settings(**given)


def _parsed(flag: str, text: str, default: Any) -> Any:
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(default, tuple):
            return tuple(filter(None, text.split(",")))
        if isinstance(default, float):
            return _seconds(text)
        return type(default)(text)
    except (KeyError, ValueError):
        raise ValueError(f'{flag}: "{text}" is not {_KINDS[type(default)]}') from None


def _seconds(text: str) -> float:
    from karmada.kube.objects.times import parse_duration

    try:
        return float(text)
    except ValueError:
        return parse_duration(text)


_KINDS: Final[dict[type, str]] = {bool: "true or false", int: "a number", float: "a number or a duration", str: "text"}
