"""`kubectl karmada` as it is installed: programs on the PATH that kubectl finds by their names."""

from __future__ import annotations

import sys
from pathlib import Path

_SCRIPT = "#!{python}\nimport sys\nfrom karmada.cli.{module} import main\nsys.exit(main())\n"


def install_plugin(folder: Path) -> Path:
    """The folder of the programs, to be put in front of the PATH."""
    for name, module in (("kubectl-karmada", "karmadactl"), ("kubectl_complete-karmada", "parsing.complete")):
        path = folder / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_SCRIPT.format(python=sys.executable, module=module))
        path.chmod(0o755)
    return folder / "bin"
