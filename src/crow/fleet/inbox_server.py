"""The inbox over HTTP, for who answers from a chat or a web service.

``GET /inbox`` is what waits; ``POST /inbox/ID`` with ``{"answer": TEXT}`` answers it, and with
``"number"`` only that very question. Each request has ``Authorization: Bearer TOKEN``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from crow.acp.listen.address import Address
from crow.acp.listen.guard import Guard
from crow.fleet.inbox import InboxError, answer, waiting

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from crow.fleet.board import Board
    from crow.fleet.job_filter import JobFilter

LARGEST = 64 * 1024
"""Bytes of an answer."""


async def serve(
    board: Board, where: JobFilter, address: Address, token: str, ready: Callable[[Address], object]
) -> None:
    """Serve the inbox until SIGTERM or SIGINT; ``ready`` is called when it can be reached."""
    from uvicorn import Config, Server

    listening, real = address.bind()
    app = application(board, where, Guard(token, real.host))
    server = Server(Config(app, lifespan="off", log_config=None, access_log=False))
    ready(real)  # whoever connects by now waits in the socket's queue
    await server.serve(sockets=[listening])


def application(board: Board, where: JobFilter, guard: Guard) -> Starlette:
    """The inbox as an ASGI application."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def judged(request: Request) -> Response:
        if wrong := guard.objection(request.headers, request.query_params):
            return JSONResponse({"error": wrong.text}, wrong.status)
        try:
            return JSONResponse(await _done(board, where, request))
        except InboxError as error:
            return JSONResponse({"error": str(error)}, error.status)

    return Starlette(
        routes=[
            Route("/inbox", judged, methods=["GET"]),
            Route("/inbox/{job}", judged, methods=["POST"]),
        ]
    )


async def _done(board: Board, where: JobFilter, request: Request) -> dict[str, Any]:
    if request.method != "POST":
        return {"waiting": await waiting(board, where)}
    text, number = answer_of(await request.body())
    return {"id": await answer(board, request.path_params["job"], text, number)}


def answer_of(body: bytes) -> tuple[str, int | None]:
    """The answer in a body of JSON, and the number if it has one. Raises `InboxError`."""
    try:
        said: Any = json.loads(body) if len(body) <= LARGEST else None
    except ValueError:
        said = None
    values = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    text, number = values.get("answer"), values.get("number")
    if not isinstance(text, str) or not isinstance(number, int | None):
        raise InboxError('the body must be JSON: {"answer": "...", "number": 1}', 400)
    return text, number
