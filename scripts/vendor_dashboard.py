"""Fetch the browser libraries of the dashboard with npm, as pinned in vendor/packages.json.

A tarball must have the integrity that the registry published for this version, and each file that is taken the SHA-256
of the table. To update one: change version and integrity (`npm view PACKAGE dist.integrity`), clear the hashes, and run
`python scripts/vendor_dashboard.py --pin`, which writes those of what was fetched.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "src/karmada/dashboard/vendor"
TABLE = FOLDER / "packages.json"


def tarball(package: str, version: str) -> bytes:
    """By npm, from the registry that it is configured with."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", f"{package}@{version}"], cwd=folder, check=True, stdout=sys.stderr)
        [file] = Path(folder).glob("*.tgz")
        return file.read_bytes()


def check_integrity(entry: dict, content: bytes) -> None:
    found = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    if found != entry["integrity"]:
        raise SystemExit(f"{entry['package']} {entry['version']}: integrity is {found}, not {entry['integrity']}")


def main(*, pin: bool) -> None:
    table = json.loads(TABLE.read_text())
    for entry in table:
        content = tarball(entry["package"], entry["version"])
        check_integrity(entry, content)
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for file in entry["files"]:
                member = archive.extractfile(f"package/{file['from']}")
                assert member is not None, file
                data = member.read()
                digest = hashlib.sha256(data).hexdigest()
                if pin:
                    file["sha256"] = digest
                elif digest != file["sha256"]:
                    raise SystemExit(f"{entry['package']}: {file['from']} has SHA-256 {digest}, not {file['sha256']}")
                (FOLDER / file["to"]).write_bytes(data)
    if pin:
        TABLE.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main(pin="--pin" in sys.argv[1:])
