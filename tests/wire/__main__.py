"""python -m tests.wire: send wire cases to a server of ours and compare its answers with the recorded ones."""

from __future__ import annotations

import asyncio
import fnmatch
import sys
from pathlib import Path

import click
import uvloop

from tests.wire.cases import OWN_CASES, Case, load_cases
from tests.wire.documented import documented_differences
from tests.wire.results import CaseResult, run_case
from tests.wire.sending import certificate_directory


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path), default=OWN_CASES)
@click.option(
    "--case", "names", multiple=True, metavar="NAME", help="Only this case; * matches anything. May be repeated."
)
@click.option("--quiet", is_flag=True, help="Only the line of each case, without the differences.")
def main(path: Path, names: tuple[str, ...], quiet: bool) -> None:
    """Send the cases of PATH (a .json or .yaml file, or a directory of them; by default the project's own) and compare.

    Every case gets an API server of its own, in this process, reached over TLS on loopback. For each case prints how
    many requests were answered identically, and below it each differing request with where its answer differs, what was
    expected and what came. Differences that docs/kubernetes-api.md lists under "Responses that differ" are counted as
    documented and not shown. Ends with the totals; the exit code is 1 if anything differs.

    tests/wire/README.md describes the form of the cases.
    """
    cases = [case for case in load_cases(path) if not names or any(fnmatch.fnmatch(case.name, name) for name in names)]
    results = uvloop.run(_run(cases, quiet))
    requests = [request for result in results for request in result.requests]
    differing = sum(bool(request.differences) for request in requests)
    documented = sum(bool(request.documented and not request.differences) for request in requests)
    same = sum(not result.differing for result in results)
    click.echo(
        f"total: {len(requests) - differing - documented}/{len(requests)} requests identical, {documented} documented, "
        f"{differing} differing; {same}/{len(results)} cases without undocumented differences"
    )
    sys.exit(1 if differing else 0)


async def _run(cases: list[Case], quiet: bool) -> list[CaseResult]:
    known = documented_differences()
    results = []
    async with certificate_directory() as certificates:
        for case in cases:
            result = await asyncio.wait_for(run_case(case, certificates, known), timeout=300)
            click.echo(result.report().splitlines()[0] if quiet else result.report())
            results.append(result)
    return results


if __name__ == "__main__":
    main()
