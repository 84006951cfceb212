"""From templates and policies to bindings."""

from karmada.controllers.detector.detector import Detector
from karmada.controllers.detector.parts import detector_parts

__all__ = ["Detector", "detector_parts"]
