"""-v and related flags: log lines as Kubernetes programs write them, on standard error or to a file."""

from __future__ import annotations

from collections.abc import Mapping


def set_up(given: Mapping[str, str]) -> None:
    """`given` has the flags by their parameter names, as they were written."""
    import logging
    import sys
    from pathlib import Path

    from karmada.kube.runtime import logging as structured

    level = int(given.get("v", 0))
    structured.setup(verbosity=level, stream=sys.stderr)
    root = logging.getLogger()
    root.setLevel(logging.DEBUG if level >= 10 else logging.INFO if level >= 4 else logging.WARNING)
    if is_true(given.get("skip_headers", "false")):
        root.handlers[0].setFormatter(logging.Formatter("%(message)s"))
    if is_true(given.get("logtostderr", "true")):
        return
    path = given.get("log_file") or (str(Path(given["log_dir"], "karmadactl.log")) if given.get("log_dir") else "")
    if path:
        to_file = logging.FileHandler(path)
        to_file.setFormatter(root.handlers[0].formatter)
        root.addHandler(to_file)
        if not is_true(given.get("alsologtostderr", "false")):
            root.handlers[0].setLevel(_LEVELS[min(max(int(given.get("stderrthreshold", 2)), 0), 3)])


_LEVELS = (20, 30, 40, 50)


def is_true(text: str) -> bool:
    return text in ("1", "t", "T", "true", "TRUE", "True")
