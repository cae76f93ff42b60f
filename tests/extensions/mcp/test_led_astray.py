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

import pytest
from tests.extensions.mcp.test_sign_in import crow


class Site(ThreadingHTTPServer):
    """Wants a sign-in, and says who does that; remembers what it is asked."""

    def __init__(self, host: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__((host, 0), Page)
        self.host = host
        self.asked: list[str] = []
        self.connected = 0
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
        body = json.dumps(self.site.table).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.site.asked.append(self.path)
        self.rfile.read(int(self.headers["content-length"]))
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
