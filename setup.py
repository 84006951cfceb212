"""What pyproject.toml cannot say: a built package knows the commit it was built from.

The facts go into a module of the build, never into the sources; an editable install has none and looks them up.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


class BuildWithFacts(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        given = os.environ.get("SOURCE_COMMIT")  # where there is no .git, as in a container build
        changes = None if given else _git("status", "--porcelain")
        built = time.gmtime(float(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
        facts = {
            "COMMIT": given or _git("rev-parse", "HEAD") or "unknown",
            "TREE_STATE": "unknown" if changes is None else "dirty" if changes else "clean",
            "DATE": time.strftime("%Y-%m-%dT%H:%M:%SZ", built),
        }
        target = Path(self.build_lib, "karmada", "_build.py")
        target.write_text("".join(f"{name} = {value!r}\n" for name, value in facts.items()))


setup(cmdclass={"build_py": BuildWithFacts})
