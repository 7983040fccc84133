# SPDX-License-Identifier: Apache-2.0
"""A route that reads a delivery without storing it: the upper bound of Airflow's API server."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def receive(request: Request) -> JSONResponse:
    return JSONResponse({"bytes": len(await request.body())})


class BareRoutePlugin(AirflowPlugin):
    """Mounts the route at `/bare`."""

    name = "bare_route"
    fastapi_apps = [  # noqa: RUF012
        {
            "app": Starlette(routes=[Route("/", receive, methods=["POST"])]),
            "url_prefix": "/bare",
            "name": "bare",
        }
    ]
