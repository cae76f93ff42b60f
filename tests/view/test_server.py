"""The page is for who started it: no other host's name, no other origin, no other token."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Mapping
from typing import Any

import pytest

from crow.view.server import Server


async def echo(query: Mapping[str, str]) -> Any:
    if query.get("fail"):
        raise ValueError("it failed")
    return dict(query)


class Got:
    """An answer, read to its end."""

    def __init__(self, server: Server, method: str, path: str, headers: dict[str, str]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        try:
            connection.request(method, path, headers=named)
            answer = connection.getresponse()
            self.status, self.headers = answer.status, answer.headers
            self.text = answer.read().decode()
        finally:
            connection.close()


async def got(server: Server, path: str, method: str = "GET", **headers: str) -> Got:
    return await asyncio.to_thread(Got, server, method, path, headers)


async def looked(server: Server, path: str, **headers: str) -> tuple[int, str]:
    answer = await got(server, path, **headers)
    return answer.status, answer.text


def cookie(server: Server) -> str:
    return f"crow_view_{server.server_port}={server.token}"


async def test_the_address_lets_in_and_hides_its_token() -> None:
    with Server({"echo": echo}, asyncio.get_running_loop()) as server:
        answer = await got(server, f"/?token={server.token}")
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        set_cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly; SameSite=Strict" in set_cookie
        given = set_cookie.partition(";")[0]
        assert (await looked(server, "/", Cookie=given))[0] == 200
        assert await looked(server, "/api/echo?a=1", Cookie=given) == (200, '{"a": "1"}')
        page = await got(server, "/", Cookie=given)
        assert "script-src 'self'" in page.headers["Content-Security-Policy"]
        status, said = await looked(server, "/api/echo?fail=1", Cookie=given)
        assert (status, json.loads(said)) == (400, {"error": "it failed"})


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/api/echo", {}),
        ("/?token=wrong", {}),
        ("/api/echo", {"Cookie": "crow_view=x; ;;=;"}),
        ("/api/echo", {"Cookie": "GOOD", "Host": "evil.example:80"}),
        ("/api/echo", {"Cookie": "GOOD", "Host": "localhost"}),
        ("/api/echo", {"Cookie": "GOOD", "Origin": "http://evil.example"}),
        ("/api/echo", {"Cookie": "GOOD", "Origin": "null"}),
        ("/api/echo", {"Cookie": "GOOD", "Sec_Fetch_Site": "cross-site"}),
        ("/api/echo", {"Cookie": "GOOD", "Sec_Fetch_Site": "same-site"}),
    ],
)
async def test_nobody_else_is_let_in(path: str, headers: dict[str, str]) -> None:
    with Server({"echo": echo}, asyncio.get_running_loop()) as server:
        given = {name: text.replace("GOOD", cookie(server)) for name, text in headers.items()}
        assert (await looked(server, path, **given))[0] == 403


@pytest.mark.parametrize(
    "path", ["/../server.py", "/%2e%2e/server.py", "/page/view.js", "/api/", "/api/x"]
)
async def test_there_are_no_other_files(path: str) -> None:
    with Server({"echo": echo}, asyncio.get_running_loop()) as server:
        assert (await looked(server, path, Cookie=cookie(server)))[0] == 404


async def test_nothing_can_be_sent_to_it() -> None:
    with Server({"echo": echo}, asyncio.get_running_loop()) as server:
        answer = await got(server, "/api/echo", "POST", Cookie=cookie(server))
        assert answer.status == 501
