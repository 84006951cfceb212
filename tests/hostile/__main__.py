"""Everything that a tenant can make large, in every kind: `make hostile`."""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from pathlib import Path

from tests.hostile.costs import Costs
from tests.hostile.growing import growths
from tests.hostile.plane import hostile_plane
from tests.hostile.turns import MeteredLoop

SIZE = 1 << 20


async def main(only: str, size: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        async with hostile_plane(Path(folder)) as plane:
            costs, found, number, refused = Costs(plane, size), 0, 0, 0
            seen: set[object] = set()
            for resource in plane.resources():
                for growth in growths(resource, set() if resource.gvk.kind == "Pod" else seen):
                    if not re.match(only, str(growth)):
                        continue
                    began = time.process_time()
                    outcome = await costs.of(growth)
                    number += 1
                    refused += not outcome.accepted
                    used = time.process_time() - began
                    shown = f"{outcome.accepted:,} bytes" if outcome.accepted else f"refused: {outcome.refusal[:160]}"
                    print(f"{growth}  {used:.1f} s  {shown}", flush=True)
                    for finding in outcome.findings:
                        found += 1
                        print(f"    {finding.step}: {finding.what}", flush=True)
            print(f"{number} fields, {refused} never accepted, {found} findings")
            return found


if __name__ == "__main__":
    arguments = sys.argv[1:]
    selected = arguments[0] if arguments else ""
    with asyncio.Runner(loop_factory=MeteredLoop) as runner:
        sys.exit(1 if runner.run(main(selected, int(arguments[1]) if len(arguments) > 1 else SIZE)) else 0)
