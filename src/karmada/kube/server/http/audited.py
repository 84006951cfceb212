"""Running a request that the audit log follows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from karmada.kube.objects.errors import ApiError
from karmada.kube.server.audit.interface import GONE, FollowsRequest
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import Result


async def audited(
    run: Callable[[Request], Awaitable[Result]],
    request: Request,
    trail: FollowsRequest | None,
    *,
    goes_on: bool = False,
) -> Result:
    """Return the result, which the log has then; `goes_on`: it has only begun, and the caller finishes the trail."""
    if trail is None:
        return await run(request)
    trail.request = request
    code, panic = GONE, False
    try:
        result = await run(request)
        trail.respond(result)
        code = getattr(result, "status", 200)
    except ApiError as error:
        trail.fail(error.status())
        code, goes_on = error.code, False
        raise
    except Exception:
        code, panic, goes_on = 500, True, False
        raise
    finally:
        if goes_on and code != GONE:
            trail.started(code)
        else:
            trail.finish(code, panic=panic)
    return result
