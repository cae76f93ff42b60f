"""How endpoints are reached: straight or by a proxy, with a certificate that somebody vouches for."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.llm.conftest import KEY, QUICK

from crow.core.errors import ModelError
from crow.llm import ChatCompletions, Retries
from crow.testing import Endpoint
from crow.testing.endpoint import CLOSE, END, USAGE, answer, begin, delta, event, piece

ONCE = Retries(limit=0)


def at(url: str) -> Any:
    return ChatCompletions("m-1", url, KEY, timeouts=QUICK, retries=ONCE)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of this machine that vouches for itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "crow")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file = tmp_path / "server.pem"
    file.write_bytes(key.private_bytes(pem, *secret) + made.public_bytes(pem))
    return file


@asynccontextmanager
async def front(
    endpoint: Endpoint, certificate: Path | None = None
) -> AsyncGenerator[tuple[str, list[str]], None]:
    """A door before an endpoint, with TLS or as a proxy: its URL, and the requests' first lines."""
    seen: list[str] = []
    served: list[asyncio.Task[Any]] = []
    tls = None
    if certificate is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        here = asyncio.current_task()
        assert here is not None
        served.append(here)
        inner, to_inner = await asyncio.open_connection("127.0.0.1", urlsplit(endpoint.url).port)
        with suppress(asyncio.CancelledError, ConnectionError):
            first = await reader.readline()
            seen.append(first.decode().strip())
            to_inner.write(first)
            await asyncio.gather(pump(reader, to_inner), pump(inner, writer))
        to_inner.close()
        writer.close()

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            target.write(data)
        target.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        port = server.sockets[0].getsockname()[1]
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{port}", seen
    finally:
        server.close()
        for each in served:
            each.cancel()
        await asyncio.gather(*served)


async def test_a_certificate_that_the_environment_names_is_trusted(
    endpoint: Endpoint, ask: Any, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    endpoint.play(answer("Hi."), answer("Again."))
    async with front(endpoint, certificate) as (url, seen):
        llm = at(f"{url}/v1")
        assert [(await ask(llm=llm)).text, (await ask(llm=llm)).text] == ["Hi.", "Again."]
        await llm.aclose()
    assert seen == ["POST /v1/chat/completions HTTP/1.1"]  # of two, over one connection


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    endpoint: Endpoint, ask: Any, certificate: Path
) -> None:
    async with front(endpoint, certificate) as (url, seen):
        with pytest.raises(
            ModelError, match=r"its certificate is not trusted: self.signed"
        ) as caught:
            await ask(llm=at(f"{url}/v1"))
    assert caught.value.kind == "network"
    assert (seen, endpoint.requests) == ([], [])


async def test_a_proxy_of_the_environment_stands_between(
    endpoint: Endpoint, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.play(answer("Hi."))
    async with front(endpoint) as (url, seen):
        monkeypatch.setenv("HTTP_PROXY", url)
        llm = at("http://models.example/v1")
        assert (await ask(llm=llm)).text == "Hi."
        await llm.aclose()
    assert seen == ["POST http://models.example/v1/chat/completions HTTP/1.1"]


async def test_a_proxy_that_is_not_there_is_an_endpoint_that_cannot_be_reached(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with pytest.raises(ModelError, match="could not be reached") as caught:
        await ask(llm=at("http://models.example/v1"))
    assert caught.value.kind == "network"


async def test_a_connection_that_its_server_closed_meanwhile_is_not_used_again(
    endpoint: Endpoint, ask: Any
) -> None:
    finished = delta(content="Hi.", finish="stop")
    whole = [begin(), piece(event(finished)), piece(event(USAGE)), piece(event("[DONE]")), END]
    endpoint.play([*whole, CLOSE], answer("Again."))
    llm = at(endpoint.url)
    assert (await ask(llm=llm)).text == "Hi."
    assert (await ask(llm=llm)).text == "Again."
    assert endpoint.connections == 2


async def test_what_a_server_says_unasked_is_no_answer(endpoint: Endpoint, ask: Any) -> None:
    late = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    endpoint.play([*answer("Hi."), late], answer("Again."))
    llm = at(endpoint.url)
    assert (await ask(llm=llm)).text == "Hi."
    assert (await ask(llm=llm)).text == "Again."
    assert endpoint.connections == 2


async def test_an_answer_may_be_compressed_although_none_was_asked_for(
    endpoint: Endpoint, ask: Any
) -> None:
    body = gzip.compress(event(delta(content="Hi.", finish="stop")) + event("[DONE]"))
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    endpoint.play([head.encode(), body[:9], 0.01, body[9:]])
    assert (await ask(llm=at(endpoint.url))).text == "Hi."


async def test_a_server_may_say_that_it_goes_on_before_it_answers(
    endpoint: Endpoint, ask: Any
) -> None:
    endpoint.play([b"HTTP/1.1 100 Continue\r\n\r\n", *answer("Hi.")])
    assert (await ask(llm=at(endpoint.url))).text == "Hi."


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
SAID = event(delta(content="Hi.")) + event(delta(finish="stop"))


async def test_an_answer_may_end_with_its_connection(endpoint: Endpoint, ask: Any) -> None:
    endpoint.play([HEAD + b"\r\n", SAID, CLOSE], [b"HTTP/1.0 200 OK\r\n\r\n" + SAID, CLOSE])
    llm = at(endpoint.url)
    assert (await ask(llm=llm)).text == "Hi."
    assert (await ask(llm=llm)).text == "Hi."
    assert endpoint.connections == 2


async def test_nothing_is_lost_of_what_came_with_an_error_behind_it(
    endpoint: Endpoint, ask: Any
) -> None:
    wrong = event({"error": {"code": 503}})
    endpoint.play([begin(), piece(event(delta(content="Hel")) + wrong)], answer("Hello."))
    heard = await ask()
    assert heard.text == "Hello."
    assert [retry.attempt for retry in heard.retries] == [1]


@pytest.mark.parametrize(
    "told, why",
    [
        ([HEAD, *[b"x-more: " + b"y" * 8000 + b"\r\n"] * 20], "headers without an end"),
        ([HEAD + b"x: " + b"y" * 200_000], "headers without an end"),
        ([HEAD + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"], "Content-Length"),
        ([b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"], "protocol"),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], "HTTP/"),
        ([HEAD, CLOSE], "closed without a response"),
        ([HEAD + b"transfer-encoding: chunked\r\n\r\nZZ\r\n"], "chunk size"),
        ([HEAD + b"content-length: 9000\r\n\r\n" + SAID[:20], CLOSE], "in the middle of"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
async def test_what_is_no_answer_of_http_is_named_in_a_line(
    endpoint: Endpoint, ask: Any, told: list[Any], why: str
) -> None:
    endpoint.play(told)
    with pytest.raises(ModelError, match=why) as caught:
        await ask(llm=at(endpoint.url))
    assert caught.value.kind == "network"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["a\nx-evil: 1", "a\r\n\r\nGET /", "ключ", "a\0b"])
def test_a_header_that_http_has_not_is_named_and_its_value_is_not_shown(value: str) -> None:
    with pytest.raises(ModelError, match="x-team") as caught:
        ChatCompletions("m-1", "http://127.0.0.1:1", KEY, headers={"x-team": value})
    assert value not in str(caught.value)
