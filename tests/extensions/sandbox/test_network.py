"""The network by name: what is allowed is reached through the proxy, and nothing goes around it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import sys
from collections.abc import AsyncIterator, Callable

import pytest
from tests.extensions.sandbox.conftest import backend, run

from crow.extensions.sandbox.domains import Domains, plain
from crow.extensions.sandbox.hello import is_begun, server_name
from crow.extensions.sandbox.policy import Policy, Proxy

Workspace = Callable[..., Policy]
GET = """
import sys, urllib.request as u
for url in sys.argv[1:]:
    try:
        print(u.urlopen(url, timeout=5).read().decode())
    except Exception as error:
        print(error)
"""


@contextlib.asynccontextmanager
async def server() -> AsyncIterator[tuple[int, list[bytes]]]:
    """A web server on loopback: its port, and what it was asked."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1], asked


async def test_an_allowed_host_is_reached_and_others_are_not(workspace: Workspace) -> None:
    confined = backend("bubblewrap")
    async with server() as (port, asked), server() as (other, unasked):
        policy = workspace(network=Proxy((f"127.0.0.1:{port}",)))
        urls = f"http://127.0.0.1:{port}/a?b http://127.0.0.1:{other}/ http://example.com/x"
        command = f"unset no_proxy NO_PROXY; {sys.executable} -c '{GET}' {urls}"
        ran = await run(confined, policy, command)
    assert ran.output.splitlines() == ["hello", *["HTTP Error 403: Forbidden"] * 2]
    assert asked[0].startswith(b"GET /a?b HTTP/1.1\r\n")
    assert b"Connection: close" in asked[0]
    assert unasked == []
    assert ran.refused == ["127.0.0.1", "example.com"]


async def test_a_tunnel_leads_to_what_is_allowed_alone(workspace: Workspace) -> None:
    confined = backend("bubblewrap")
    code = """
import socket, sys
for line in sys.argv[1:]:
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(5)
    s.send(f"CONNECT {line} HTTP/1.1\\r\\n\\r\\n".encode())
    head = s.recv(999).split(b"\\r\\n")[0].decode()
    s.send(b"GET / HTTP/1.1\\r\\n\\r\\n") if "200" in head else None
    print(head, s.recv(999)[-5:].decode() if "200" in head else "")
"""
    async with server() as (port, _):
        policy = workspace(network=Proxy((f"127.0.0.1:{port}", "localhost"), ("evil.org",)))
        hosts = f"127.0.0.1:{port} 127.0.0.1:1 evil.org:443 localhost:{port} [::1]:{port} nonsense"
        ran = await run(confined, policy, f"{sys.executable} -c '{code}' {hosts}")
    told = [line.split(" ", 1)[1].strip() for line in ran.output.splitlines()]
    assert told == ["200 Connection established hello", *["403 Forbidden"] * 5], ran.output


async def test_nothing_goes_around_the_proxy(workspace: Workspace) -> None:
    confined = backend("bubblewrap")
    code = """
import socket, sys
for work in (
    lambda: socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2),
    lambda: socket.getaddrinfo("example.com", 80),
    lambda: socket.create_connection(("1.1.1.1", 53), 2),
    lambda: socket.socket(socket.AF_UNIX),
):
    try:
        work()
        print("out")
    except OSError:
        print("held")
"""
    async with server() as (port, asked):
        policy = workspace(network=Proxy(("*",)))
        ran = await run(confined, policy, f"{sys.executable} -c '{code}' {port}")
    assert ran.output.split() == ["held"] * 4
    assert asked == []


async def test_where_there_is_no_proxy_there_is_no_network(workspace: Workspace) -> None:
    async with server() as (port, asked):
        policy = workspace(network=Proxy((f"127.0.0.1:{port}",)))
        command = f"{sys.executable} -c '{GET}' http://127.0.0.1:{port}/"
        await run(backend("landlock"), policy, command)
    assert asked == []


@pytest.mark.parametrize(
    "rules, host, is_allowed",
    [
        ("pypi.org", "pypi.org", True),
        ("pypi.org", "PyPI.org.", True),
        ("pypi.org", "www.pypi.org", False),
        ("pypi.org", "pypi.org.evil.com", False),
        ("pypi.org", "evilpypi.org", False),
        ("*.pypi.org", "files.pypi.org", True),
        ("*.pypi.org", "a.b.pypi.org", True),
        ("*.pypi.org", "pypi.org", False),
        ("*.pypi.org", "evilpypi.org", False),
        ("*", "anything.org", True),
        ("pypi.org:80", "pypi.org", False),
        ("pypi.org:443", "pypi.org", True),
        ("[::1]:443", "::1", True),
        ("::1", "::1", True),
        ("bücher.de", "xn--bcher-kva.de", True),
        ("xn--bcher-kva.de", "BÜCHER.de", True),
        ("*", "a/b", False),
        ("*", "a@b.org", False),
        ("*", "", False),
        ("*", ".", False),
        ("*", "a..b", False),
        ("", "pypi.org", False),
        ("*.", "pypi.org", False),
        ("* !pypi.org", "pypi.org", False),
        ("* !*.evil.org", "x.evil.org", False),
        ("evil.org !evil.org:443", "evil.org", False),
    ],
)
def test_rules_name_whole_labels(rules: str, host: str, is_allowed: bool) -> None:
    words = rules.split(" ")
    denied = [word[1:] for word in words if word.startswith("!")]
    domains = Domains([word for word in words if not word.startswith("!")], denied)
    assert domains.allow(host, 443) is is_allowed
    assert plain("") is None


@pytest.mark.parametrize("name", ["example.org", "a." * 60 + "org"])
def test_the_name_in_tls_is_read_as_a_client_writes_it(name: str) -> None:
    sent = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = sent.read()
    assert server_name(hello) == name
    assert not is_begun(hello)
    assert all(is_begun(hello[:cut]) for cut in range(1, len(hello)))
    assert server_name(hello[:80]) == ""
    assert server_name(b"GET / HTTP/1.1\r\n") is None
    assert server_name(b"") is None


async def test_tls_to_an_allowed_address_cannot_name_another_host(workspace: Workspace) -> None:
    confined = backend("bubblewrap")
    code = """
import socket, ssl, sys
s = socket.create_connection(("127.0.0.1", 3128))
s.send(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\n\\r\\n".encode()); s.recv(999)
try:
    ssl._create_unverified_context().wrap_socket(s, server_hostname="front.example.com")
except OSError:
    print("ended")
"""
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(99))
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1", 0) as listening:
        place = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        policy = workspace(network=Proxy((place,)))
        ran = await run(confined, policy, f"{sys.executable} -c '{code}' {place}")
    assert (ran.output, ran.refused) == ("ended\n", ["front.example.com"])
    assert heard == [b""]
