"""The page on loopback, for one browser: a token, no other host's name, no other origin.

What it answers is asked of the store on the event loop that the store lives on.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

COOKIE = "crow_view"
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
FILES = ("index.html", "view.css", "view.js")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PATIENCE = 30.0

SITES = ("none", "same-origin")
Answer = Callable[[Mapping[str, str]], Awaitable[Any]]
Answers = Mapping[str, Answer]
"""What is behind ``/api/NAME``: a function of the query, whose result is JSON."""


def asset(name: str) -> bytes:
    """A file of the page."""
    return resources.files("crow.view").joinpath("page", name).read_bytes()


class Server(ThreadingHTTPServer):
    """``with Server(answers, loop) as server``; ``server.url`` opens the page."""

    daemon_threads = True

    def __init__(self, answers: Answers, loop: asyncio.AbstractEventLoop, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.token = secrets.token_urlsafe(24)
        self.answers = answers
        self.loop = loop
        self.host = f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        """The address of the page, with what lets one in."""
        return f"http://{self.host}/?token={self.token}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, name="crow-view", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a browser that goes away in the middle is no error."""

    def admits(self, given: str) -> bool:
        """True for the token."""
        return hmac.compare_digest(given.encode(), self.token.encode())


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server_version = "crow"
    sys_version = ""
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer: the page, its files, or JSON."""
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        if not self._is_ours():
            return self._refuse(HTTPStatus.FORBIDDEN, "not from here")
        if parts.path == "/" and "token" in query:
            return self._enter(query["token"])
        if not self.server.admits(self._cookie()):
            said = "open the address that crow view printed: it lets you in"
            return self._refuse(HTTPStatus.FORBIDDEN, said)
        return self._serve(parts.path.lstrip("/") or "index.html", query)

    def _serve(self, name: str, query: Mapping[str, str]) -> None:
        if name in FILES:
            return self._send(HTTPStatus.OK, TYPES[name.rpartition(".")[2]], asset(name))
        if name.startswith("api/") and name[4:] in self.server.answers:
            return self._answer(name[4:], query)
        return self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def _is_ours(self) -> bool:
        """False for another host's name (DNS rebinding), and for another page's requests."""
        site = self.headers.get("Sec-Fetch-Site", "none")
        origin = self.headers.get("Origin")
        is_here = self.headers.get("Host") == self.server.host
        return is_here and origin in (None, f"http://{self.server.host}") and site in SITES

    def _cookie(self) -> str:
        try:
            cookies = SimpleCookie(self.headers.get("Cookie", ""))
        except CookieError:
            return ""
        name = f"{COOKIE}_{self.server.server_port}"
        return cookies[name].value if name in cookies else ""

    def _enter(self, token: str) -> None:
        """Let the browser in, and take the token out of its address."""
        if not self.server.admits(token):
            said = "this address is of another crow view, which has ended"
            return self._refuse(HTTPStatus.FORBIDDEN, said)
        name = f"{COOKIE}_{self.server.server_port}"  # cookies know no ports
        cookie = f"{name}={self.server.token}; HttpOnly; SameSite=Strict; Path=/"
        headers = {"Location": "/", "Set-Cookie": cookie}
        return self._send(HTTPStatus.SEE_OTHER, "text/plain", b"", headers)

    def _answer(self, name: str, query: Mapping[str, str]) -> None:
        made = _made(self.server.answers[name], query)
        try:
            body = asyncio.run_coroutine_threadsafe(made, self.server.loop).result(PATIENCE)
            status = HTTPStatus.OK
        except Exception as error:  # noqa: BLE001 - said to who looks, in one line
            body, status = {"error": str(error) or type(error).__name__}, HTTPStatus.BAD_REQUEST
        text = json.dumps(body, ensure_ascii=False, default=str)
        self._send(status, "application/json", text.encode(errors="replace"))

    def _refuse(self, status: HTTPStatus, said: str) -> None:
        self._send(status, "text/plain", f"{said}\n".encode())

    def _send(
        self,
        status: HTTPStatus,
        kind: str,
        body: bytes,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.send_response(status)
        for header, text in {**HEADERS, **headers}.items():
            self.send_header(header, text)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


async def _made(answer: Answer, query: Mapping[str, str]) -> Any:
    return await answer(query)
