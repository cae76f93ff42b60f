"""Who gets in: tokens, the Host and Origin headers, and what is no request of the protocol."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus

HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
EVENTS = {"Accept": "text/event-stream"}
BEARER = {"Authorization": "Bearer a-token-for-tests-only"}


@pytest.fixture
def client(server: Any) -> Any:
    with httpx2.Client(base_url=server.bare.removesuffix("/acp"), timeout=50) as client:
        yield client


def test_a_request_without_the_token_is_refused(client: Any, server: Any) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic a-token-for-tests-only"},
        {"Authorization": "Bearer \xe4".encode("latin-1")},
    ):
        for method in ("POST", "GET", "DELETE"):
            refused = client.request(method, "/acp", headers=headers)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"
    assert client.post("/acp?token=wrong", json=HELLO).status_code == 401
    assert client.post("/acp", json=HELLO, headers=BEARER).status_code == 200
    assert httpx2.post(server.http, json=HELLO).status_code == 200


@pytest.mark.parametrize(
    "host, status",
    [
        ("evil.example", 403),
        ("127.0.0.1.evil.example:80", 403),
        ("", 403),
        ("[::1", 403),
        ("localhost:1", 200),
        ("[::1]:2", 200),
        ("127.0.0.1", 200),
    ],
)
def test_a_host_of_another_name_is_refused(client: Any, host: str, status: int) -> None:
    answer = client.post("/acp", json=HELLO, headers={**BEARER, "Host": host})
    assert answer.status_code == status


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "file://", ""]
)
async def test_pages_of_another_origin_are_refused(client: Any, server: Any, origin: str) -> None:
    answer = client.post("/acp", json=HELLO, headers={**BEARER, "Origin": origin})
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]
    with pytest.raises(InvalidStatus) as refused:
        async with connect(server.ws, additional_headers={"Origin": origin}):
            pass
    assert refused.value.response.status_code == 403


async def test_a_page_of_the_server_itself_may_connect(server: Any) -> None:
    own = server.bare.removesuffix("/acp")
    async with connect(server.ws, additional_headers={"Origin": own}) as own_page:
        await own_page.send(json.dumps(HELLO))
        assert json.loads(await own_page.recv())["result"]["protocolVersion"] == 1


async def test_a_socket_without_the_token_is_refused(server: Any) -> None:
    for url in (server.ws.partition("?")[0], server.ws + "x"):
        with pytest.raises(InvalidStatus) as refused:
            async with connect(url):
                pass
        assert refused.value.response.status_code == 401
    async with connect(server.ws.partition("?")[0], additional_headers=BEARER) as known:
        await known.send(json.dumps(HELLO))
        assert "result" in json.loads(await known.recv())


def test_what_is_no_message_gets_a_status_that_says_so(client: Any) -> None:
    client.headers.update(BEARER)
    connection = client.post("/acp", json=HELLO).headers["acp-connection-id"]
    named = {"Acp-Connection-Id": connection}
    prompt = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {}}
    as_json = {"Content-Type": "application/json"}
    assert client.post("/acp", content=b"{}").status_code == 415
    assert client.post("/acp", content=b"{", headers=as_json).json()["error"]["code"] == -32700
    assert client.post("/acp", json={"id": 1}, headers=named).json()["error"]["code"] == -32600
    assert client.post("/acp", json=[HELLO]).status_code == 501
    assert client.post("/acp", json=HELLO, headers=named).status_code == 400
    assert client.post("/acp", json={**HELLO, "params": {}}).status_code == 400
    assert client.post("/acp", json=prompt).status_code == 400
    assert client.post("/acp", json=prompt, headers=named).status_code == 400
    unknown = {**named, "Acp-Session-Id": "nobody's"}
    assert client.post("/acp", json=prompt, headers=unknown).status_code == 202
    other = {**prompt, "params": {"sessionId": "somebody's"}}
    assert client.post("/acp", json=other, headers=unknown).status_code == 400
    assert client.post("/acp", json=prompt, headers={"Acp-Connection-Id": "x"}).status_code == 404
    assert client.get("/acp", headers={**named, "Accept": "text/html"}).status_code == 406
    assert client.get("/acp", headers=EVENTS).status_code == 400
    assert client.get("/acp", headers={**EVENTS, **named, "Last-Event-ID": "9"}).status_code == 409
    assert client.put("/acp", headers=named).status_code == 405
    assert client.delete("/acp", headers=named).status_code == 202
    assert client.delete("/acp", headers=named).status_code == 404
    assert client.get("/other").status_code == 404


@pytest.mark.parametrize(
    "data, answered",
    [
        (b"\x16\x03\x01\x02\x00\x01", b"HTTP/1.1 400"),
        (b"GET /acp?\xff HTTP/1.1\r\n\r\n", b"HTTP/1.1 4"),
        (b"POST / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n", b"HTTP/1.1 4"),
    ],
)
def test_what_is_no_http_is_refused(server: Any, data: bytes, answered: bytes) -> None:
    with socket.create_connection(server.place) as raw:
        raw.sendall(data + b"\r\n\r\n")
        raw.settimeout(20)
        assert raw.recv(100).startswith(answered)


def test_a_message_that_breaks_off_is_none(client: Any, server: Any) -> None:
    lines = ("POST /acp HTTP/1.1", "Host: localhost", f"Authorization: {BEARER['Authorization']}")
    more = ("Content-Type: application/json", "Content-Length: 1000", "", '{"jsonrpc"')
    with socket.create_connection(server.place) as raw:
        raw.sendall("\r\n".join([*lines, *more]).encode())
    assert client.post("/acp", json=HELLO, headers=BEARER).status_code == 200


def test_a_message_that_is_too_long_is_refused(client: Any) -> None:
    headers = {**BEARER, "Content-Type": "application/json"}
    too_much = (b" " * 2**20 for _ in range(33))
    assert client.post("/acp", content=too_much, headers=headers).status_code == 413


async def test_a_frame_that_is_too_long_ends_its_socket_and_no_other(server: Any) -> None:
    async with connect(server.ws) as other, connect(server.ws) as broken:
        with contextlib.suppress(ConnectionClosedError):
            await broken.send(" " * (2**25 + 1))
        with pytest.raises(ConnectionClosedError) as closed:
            await broken.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
        await other.send(json.dumps(HELLO))
        assert "result" in json.loads(await other.recv())


async def test_more_clients_than_there_is_room_for_are_sent_away(server: Any) -> None:
    taken: list[str] = []
    async with httpx2.AsyncClient() as client:
        while (answer := await client.post(server.http, json=HELLO)).status_code == 200:
            taken.append(answer.headers["acp-connection-id"])
        assert answer.status_code == 503
        assert 32 < len(taken) <= 64
        with pytest.raises(InvalidStatus) as refused:
            async with connect(server.ws):
                pass
        assert refused.value.response.status_code == 503
        for name in taken:
            gone = await client.delete(server.http, headers={"Acp-Connection-Id": name})
            assert gone.status_code == 202
        assert (await client.post(server.http, json=HELLO)).status_code == 200
