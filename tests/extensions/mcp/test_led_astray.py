"""Where a server may lead a sign-in: to nobody whose certificate is not known, and into no network."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from tests.extensions.mcp.test_sign_in import BROWSER, crow, kept


class Site(ThreadingHTTPServer):
    """Wants a sign-in, and says who does that; remembers what it is asked."""

    def __init__(self, host: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__((host, 0), Page)
        self.host = host
        self.asked: list[str] = []
        self.connected = 0
        self.said = ""
        self.table: dict[str, Any] = {}
        self.tls = tls

    def get_request(self) -> tuple[Any, Any]:
        request, address = super().get_request()
        self.connected += 1
        return (self.tls.wrap_socket(request, server_side=True) if self.tls else request), address


class Page(BaseHTTPRequestHandler):
    """What is there."""

    @property
    def site(self) -> Site:
        assert isinstance(self.server, Site)
        return self.server

    def do_GET(self) -> None:
        self.site.asked.append(self.path)
        if self.path.startswith("/authorize?"):
            asked = parse_qs(urlsplit(self.path).query)
            back = urlencode({"code": "c", "state": asked["state"][0]})
            self.send_response(302)
            self.send_header("location", f"{asked['redirect_uri'][0]}?{back}")
            self.send_header("content-length", "0")
            self.end_headers()
            return
        body = json.dumps(self.site.table).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.site.asked.append(self.path)
        said = self.rfile.read(int(self.headers["content-length"]))
        if self.path in ("/register", "/token"):
            is_client = self.path == "/register"
            body = (
                json.dumps({**json.loads(said), "client_id": "c"}) if is_client else self.site.said
            )
            self.send_response(201 if is_client else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())
            return
        self.send_response(401)
        self.send_header("www-authenticate", "Bearer")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
        pass


@pytest.fixture(params=["127.0.0.1", socket.gethostname()], ids=["here", "far"])
def sites(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Site, Site]]:
    """An MCP server, and an authorization server with a certificate that nobody knows."""
    if shutil.which("openssl") is None:
        pytest.skip("makes a certificate with openssl")
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split()
    names = ["-subj", "/CN=nobody", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", *options, "-keyout", str(files[0]), "-out", str(files[1]), *names]
    subprocess.run(command, check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files[1], files[0])
    with ExitStack() as stack:
        server, issuer = (
            stack.enter_context(Site(request.param)),
            stack.enter_context(Site("127.0.0.1", tls)),
        )
        for each in (server, issuer):
            threading.Thread(target=each.serve_forever, daemon=True).start()
            stack.callback(each.shutdown)
        url = f"https://127.0.0.1:{issuer.server_port}"
        server.table = {"authorization_servers": [url]}
        yield server, issuer


@pytest.mark.slow
def test_an_authorization_server_is_known_and_not_on_this_machine_for_a_server_far_away(
    sites: tuple[Site, Site],
) -> None:
    server, issuer = sites
    url = server.table["resource"] = f"http://{server.host}:{server.server_port}/mcp"
    assert crow("add", "it", url)[0] == 0
    status, told = crow("login", "it", "--no-browser")
    assert status == 1
    assert server.asked
    if server.host == "127.0.0.1":
        assert "CERTIFICATE_VERIFY_FAILED" in told
    else:
        assert "127.0.0.1 is no place to sign in for" in told
    assert (issuer.connected, issuer.asked) == (int(server.host == "127.0.0.1"), [])


@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    [
        '{"access_token": "SECRET',
        '{"refresh_token": "SECRET"}',
        '{"access_token": "SECRET\\r\\nx: y", "token_type": "Bearer"}',
        '{"access_token": "SECRET\\u2603", "token_type": "Bearer"}',
    ],
)
def test_an_answer_with_a_token_that_is_none_is_quoted_nowhere(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER", BROWSER)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    with Site("127.0.0.1") as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        server.said = said
        server.table = {
            "resource": f"{url}/mcp",
            "authorization_servers": [url],
            "issuer": url,
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
            "registration_endpoint": f"{url}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }
        assert crow("add", "it", f"{url}/mcp")[0] == 0
        status, told = crow("login", "it")
        server.shutdown()
    assert status == 1
    assert "/token" in server.asked
    assert "signing in failed" in told
    assert "SECRET" not in told
    assert "SECRET" not in json.dumps(kept())


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\x1b[2J"])
def test_a_server_has_a_name_that_can_be_read(name: str) -> None:
    status, told = crow("add", "--", name, "http://127.0.0.1:9/mcp")
    assert (status, "a server is not called" in told) == (2, True)
