"""The server as an ASGI application: one endpoint, behind a guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from crow.acp.listen.address import PATH
from crow.acp.listen.http import Exchange
from crow.acp.listen.websocket import speak

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from crow.acp.listen.guard import Guard
    from crow.acp.listen.hub import Hub


class Guarded:
    """An application that sees only requests to which the guard has no objection."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, before anything of it is read, or pass it on."""
        asked = HTTPConnection(scope)
        objection = self._guard.objection(asked.headers, asked.query_params)
        if objection is None:
            await self._app(scope, receive, send)
            return
        headers = {"WWW-Authenticate": "Bearer"} if objection.status == 401 else None
        refusal = JSONResponse({"error": objection.text}, objection.status, headers)
        if scope["type"] == "websocket":
            await WebSocket(scope, receive, send).send_denial_response(refusal)
        else:
            await refusal(scope, receive, send)


def application(hub: Hub, guard: Guard) -> ASGIApp:
    """The endpoint of a hub."""
    exchange = Exchange(hub)

    async def converse(websocket: WebSocket) -> None:
        await speak(websocket, hub, is_node=guard.is_node(websocket.headers))

    routes = [
        Route(PATH, exchange.answer, methods=["GET", "POST", "DELETE"]),
        WebSocketRoute(PATH, converse),
    ]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    return Guarded(app, guard)
