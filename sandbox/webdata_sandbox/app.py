# SPDX-License-Identifier: Apache-2.0
"""The ASGI application: the service under ``/v2``, the control API under ``/_sandbox``."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Mount, Route

from webdata_sandbox.control.routes import routes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .service import Sandbox


def build(sandbox: Sandbox) -> Starlette:
    """Build the ASGI application of a sandbox. Its lifespan runs the agenda."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        sandbox.resume()
        agenda = asyncio.ensure_future(sandbox.core.agenda.run())
        try:
            yield
        finally:
            agenda.cancel()
            await sandbox.close()

    return Starlette(
        routes=[
            Mount("/_sandbox", routes=routes(sandbox)),
            Route("/media/{key}", sandbox.downloads.serve),
            Mount("/", app=sandbox.dispatcher),
        ],
        lifespan=lifespan,
    )
