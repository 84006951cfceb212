"""Feature gates: named switches with a stage of ripeness, set by `--feature-gates=A=true,B=false`.

AllAlpha and AllBeta switch whole stages, for features that are not named themselves. A feature that became part of the
product is locked: it can be named, but not switched off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


class Stage(Enum):
    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


@dataclass(frozen=True, slots=True)
class Feature:
    default: bool
    stage: Stage = Stage.ALPHA
    locked: bool = False


_ALL = {"AllAlpha": Stage.ALPHA, "AllBeta": Stage.BETA}
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class FeatureGates:
    def __init__(self, features: Mapping[str, Feature]) -> None:
        self._features = dict(features)
        self._set: dict[str, bool] = {}

    def add(self, name: str, feature: Feature) -> None:
        known = self._features.get(name)
        if known is not None and known != feature:
            raise ValueError(f"feature gate {name!r} with different spec already exists")
        self._features[name] = feature

    def enabled(self, name: str) -> bool:
        feature = self._features[name]
        if name in self._set:
            return self._set[name]
        for group, stage in _ALL.items():
            if feature.stage is stage and group in self._set:
                return self._set[group]
        return feature.default

    def set(self, text: str) -> None:
        """Set what stands after --feature-gates=; ValueError changes nothing."""
        values: dict[str, bool] = {}
        for part in text.split(","):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not name:
                continue
            if not equals:
                raise ValueError(f"missing bool value for {name}")
            if value not in _BOOLEANS:
                raise ValueError(
                    f'invalid value of {name}={value}, err: strconv.ParseBool: parsing "{value}": invalid syntax'
                )
            values[name] = _BOOLEANS[value]
        self.set_values(values)

    def set_values(self, values: Mapping[str, bool]) -> None:
        for name, value in values.items():
            feature = self._features.get(name)
            if feature is None and name not in _ALL:
                raise ValueError(f"unrecognized feature gate: {name}")
            if feature is not None and feature.locked and value != feature.default:
                locked = str(feature.default).lower()
                raise ValueError(
                    f"cannot set feature gate {name} to {str(value).lower()}, feature is locked to {locked}"
                )
        self._set.update(values)

    def all(self) -> Iterator[tuple[str, Stage, bool]]:
        """Yield every feature by name, with its stage and whether it is enabled."""
        for name, feature in sorted(self._features.items()):
            yield name, feature.stage, self.enabled(name)

    def describe(self) -> list[str]:
        """Return one line per gate for a flag's help."""
        lines = [f"{name}=true|false ({stage.value} - default=false)" for name, stage in _ALL.items()]
        for name, feature in sorted(self._features.items()):
            if feature.stage is not Stage.GA and not feature.locked:
                lines.append(f"{name}=true|false ({feature.stage.value} - default={str(feature.default).lower()})")
        return lines


class FeatureMetrics:
    """A metrics collector under the name that Kubernetes' components use: which features are enabled here."""

    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        text = "Whether a feature gate is enabled"
        family = GaugeMetricFamily("kubernetes_feature_enabled", text, labels=["name", "stage"])
        for name, stage, enabled in self._gates.all():
            family.add_metric([name, stage.value], int(enabled))
        yield family
