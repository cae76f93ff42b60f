"""The network by name: what is allowed is reached through the proxy, and nothing goes around it."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
import sys
from collections.abc import AsyncIterator, Callable

import pytest
from tests.extensions.sandbox.conftest import backend, run

from crow.extensions.sandbox.client_hello import is_begun, server_name
from crow.extensions.sandbox.domains import Domains, plain
from crow.extensions.sandbox.mounts import PRIVATE, is_below
from crow.extensions.sandbox.policy import Policy, Proxy
from crow.extensions.sandbox.upstream import upstream_to

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


TUNNEL = """
import socket, sys
for line in sys.argv[1:]:
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(5)
    s.send(f"CONNECT {line} HTTP/1.1\\r\\n\\r\\n".encode())
    head = s.recv(999).split(b"\\r\\n")[0].decode()
    s.send(b"GET / HTTP/1.1\\r\\n\\r\\n") if "200" in head else None
    print(head.split(" ")[1], s.recv(999)[-5:].decode() if "200" in head else "")
"""


async def test_a_tunnel_leads_to_what_is_allowed_alone(workspace: Workspace) -> None:
    confined = backend("bubblewrap")
    async with server() as (port, _):
        policy = workspace(network=Proxy((f"127.0.0.1:{port}", "localhost"), ("evil.org",)))
        hosts = f"127.0.0.1:{port} 127.0.0.1:1 evil.org:443 localhost:{port} [::1]:{port} nonsense"
        ran = await run(confined, policy, f"{sys.executable} -c '{TUNNEL}' {hosts}")
    assert ran.output.splitlines() == ["200 hello", *["403 "] * 5], ran.output


SOCKS = """
import socket, sys
for line in sys.argv[1:]:
    host, port = line.rsplit(":", 1)
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(5)
    s.send(b"\\5\\1\\0"); chosen = s.recv(2)
    try:
        place = b"\\1" + socket.inet_aton(host)
    except OSError:
        place = b"\\3" + bytes([len(host)]) + host.encode()
    s.send(b"\\5\\1\\0" + place + int(port).to_bytes(2, "big"))
    said = s.recv(10)
    s.send(b"GET / HTTP/1.1\\r\\n\\r\\n") if said[1] == 0 else None
    print(chosen[1], said[1], s.recv(999)[-5:].decode() if said[1] == 0 else "")
"""


async def test_it_speaks_socks_by_the_same_rules(workspace: Workspace) -> None:
    confined = backend("bubblewrap")
    async with server() as (port, _):
        allowed = (f"127.0.0.1:{port}", "127.0.0.1:1", "localhost")
        policy = workspace(network=Proxy(allowed))
        hosts = f"127.0.0.1:{port} 127.0.0.1:2 127.0.0.1:1 evil.org:443 localhost:{port}"
        ran = await run(confined, policy, f"{sys.executable} -c '{SOCKS}' {hosts}")
    assert ran.output.splitlines() == ["0 0 hello", "0 2 ", "0 4 ", "0 2 ", "0 2 "]
    assert ran.refused == ["127.0.0.1", "evil.org", "localhost"]


async def test_what_is_no_request_of_socks_ends(workspace: Workspace) -> None:
    code = """
import socket
for sent in (b"\\5\\1\\2", b"\\5\\1\\0\\5\\2\\0\\1" + bytes(6), b"\\5\\1\\0\\5\\1\\0\\7" + bytes(6), b"\\5"):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(5)
    s.send(sent); s.shutdown(socket.SHUT_WR)
    said = b""
    while piece := s.recv(99):
        said += piece
    print(said.hex())
"""
    policy = workspace(network=Proxy(("example.com",)))
    ran = await run(backend("bubblewrap"), policy, f"{sys.executable} -c '{code}'")
    refused = ["05ff", "050005070001000000000000", "050005080001000000000000", ""]
    assert ran.output.split("\n")[:-1] == refused


@pytest.mark.slow
async def test_git_reaches_a_host_over_ssh_through_it(workspace: Workspace) -> None:
    confined = backend("bubblewrap")
    if shutil.which("ssh") is None or is_below(__file__, PRIVATE):
        pytest.skip("there is no ssh here, or this clone lies where commands have their own files")
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-nobody\r\n")
        heard.append(await reader.readline())
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        policy = workspace(network=Proxy((f"127.0.0.1:{port}",)))
        for host in ("127.0.0.1", "127.0.0.2"):
            ran = await run(confined, policy, f"git ls-remote ssh://me@{host}:{port}/x 2>&1")
    assert [each[:8] for each in heard] == [b"SSH-2.0-"]
    assert "127.0.0.2: HTTP/1.1 403 Forbidden" in ran.output
    assert ran.refused == ["127.0.0.2"]


@contextlib.asynccontextmanager
async def company(monkeypatch: pytest.MonkeyPatch, **more: str) -> AsyncIterator[list[str]]:
    """A company's proxy, which the environment names; the first lines of what it was asked."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert "Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in head
        asked.append(head.partition("\r\n")[0])
        if head.startswith("CONNECT no."):
            writer.write(b"HTTP/1.1 407 Who are you\r\n\r\n")
        elif head.startswith("CONNECT"):
            writer.write(b"HTTP/1.1 200 Yes\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfound")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        for name in ("HTTPS_PROXY", "http_proxy"):
            monkeypatch.setenv(name, f"http://me:p%40ss@127.0.0.1:{port}")
        for name, value in more.items():
            monkeypatch.setenv(name, value)
        yield asked


async def test_it_goes_through_the_companys_proxy_where_there_is_one(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    confined = backend("bubblewrap")
    policy = workspace(network=Proxy(("*.invalid",)))
    async with company(monkeypatch) as asked:
        hosts = "a.invalid:443 no.invalid:22 other.org:443"
        ran = await run(confined, policy, f"{sys.executable} -c '{TUNNEL}' {hosts}")
        assert ran.output.splitlines() == ["200 found", "502 ", "403 "]
        ran = await run(confined, policy, f"{sys.executable} -c '{GET}' http://b.invalid/x?y")
        assert ran.output == "found\n"
    expected = ["CONNECT a.invalid:443", "CONNECT no.invalid:22", "GET http://b.invalid/x?y"]
    assert asked == [f"{each} HTTP/1.1" for each in expected]


SMUGGLING = """
import socket
other = "other.org:443 HTTP/1.1\\r\\nX: a.invalid"
pieces = [b"\\5\\1\\0", b"\\5\\1\\0\\3" + bytes([len(other)]) + other.encode() + b"\\0\\x50"]
asks = [[f"CONNECT other.org:443{end}X:a.invalid:443 HTTP/1.1\\r\\n\\r\\n"] for end in "\\n\\r"]
asks += [[f"GET http://a.invalid/ HTTP/1.1\\r\\nX: y\\n\\nGET http://other.org/ HTTP/1.1\\r\\n\\r\\n"]]
for ask in [pieces, *([text[0].encode()] for text in asks)]:
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(5)
    for piece in ask:
        s.send(piece); said = s.recv(99)
    print(said[:12])
"""


async def test_no_name_carries_another_request_to_the_companys_proxy(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    confined = backend("bubblewrap")
    policy = workspace(network=Proxy(("*.invalid",)))
    async with company(monkeypatch) as asked:
        ran = await run(confined, policy, f"{sys.executable} -c '{SMUGGLING}'")
    assert asked == []
    assert [line[2:5] for line in ran.output.splitlines()] == [r"\x0", "HTT", "HTT", "HTT"]
    assert "200" not in ran.output


async def test_what_the_companys_proxy_is_not_for_is_reached_straight(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    confined = backend("bubblewrap")
    async with company(monkeypatch, NO_PROXY="x.org, 127.0.0.1") as asked, server() as (port, _):
        policy = workspace(network=Proxy((f"127.0.0.1:{port}",)))
        where = f"127.0.0.1:{port}"
        ran = await run(confined, policy, f"{sys.executable} -c '{TUNNEL}' {where}")
        assert ran.output == "200 hello\n"
        command = f"unset no_proxy NO_PROXY; {sys.executable} -c '{GET}' http://{where}/"
        assert (await run(confined, policy, command)).output == "hello\n"
    assert asked == []


@pytest.mark.parametrize(
    ("said", "host", "is_exempt"),
    [
        ("*", "a.org", True),
        (".a.org", "x.a.org", True),
        ("a.org", "A.org", True),
        ("*.a.org b.org", "y.b.org", True),
        ("a.org:443", "a.org", True),
        ("a.org:80", "a.org", False),
        ("a.org", "ba.org", False),
        ("", "a.org", False),
    ],
)
def test_names_that_no_proxy_is_for(said: str, host: str, is_exempt: bool) -> None:
    env = {"https_proxy": "proxy:8080", "NO_PROXY": said}
    found = upstream_to(host, 443, is_plain=False, env=env)
    assert (found is None) is is_exempt
    assert found is None or (found.host, found.port, found.fields) == ("proxy", 8080, b"")


def test_small_letters_go_first_and_what_is_no_proxy_for_http_is_an_error() -> None:
    env = {"ALL_PROXY": "http://one", "all_proxy": "https://two"}
    found = upstream_to("a.org", 80, is_plain=True, env=env)
    assert found is not None
    assert (found.host, found.port, found.is_secret) == ("two", 443, True)
    with pytest.raises(OSError, match="none for HTTP"):
        upstream_to("a.org", 443, is_plain=False, env={"ALL_PROXY": "socks5://one"})


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
