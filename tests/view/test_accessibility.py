"""The page before axe-core, which knows what keeps people out: in each view, light and dark."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import tarfile
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.npm import programs
from tests.view.conftest import browser

from crow.view.document import document
from crow.view.markdown import dressed
from crow.view.server import TYPES, asset

pytestmark = [pytest.mark.slow, pytest.mark.node]

AXE = "axe-core@4.14.1"
LOOK = """
<script src="axe.min.js"></script>
<script>setTimeout(() => axe.run().then((found) => {
  const told = found.violations.map((each) => [each.id, each.nodes.map((node) => node.target.join(" "))]);
  document.title = "axe: " + JSON.stringify(told);
}), 2000);</script></body>"""
PLACES = ["", "#one", "#one/timeline", "#one/hooks", "#one/usage", "#one/files", "#one/compare/two"]


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The checker, from npm; skips where that cannot be reached."""
    there = programs()
    if there is None:
        pytest.skip("npm is not installed: the page is not checked for accessibility")
    folder = tmp_path_factory.mktemp("axe")
    command = [*there[1], "pack", "--silent", AXE]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"{AXE} cannot be had from npm: {error}")
    with tarfile.open(next(folder.glob("*.tgz"))) as package:
        file = package.extractfile("package/axe.min.js")
        assert file is not None
        return file.read()


@pytest.fixture
def checked(axe: bytes, lines: str, broken: str) -> Generator[str]:
    """The address of the page with the checker in it, which its own policy would not let in."""
    docs = {"one": lines, "two": broken}
    row = {"updated": "2026-01-01T00:00:00Z", "cwd": "/", "prompt": "p", "turns": 1, "cost": None}
    row |= {"used_by": "x", "snippet": "found"}

    class Page(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            name = parts.path.lstrip("/") or "index.html"
            kind, body = TYPES.get(name.rpartition(".")[2], "application/json"), b""
            if name == "axe.min.js":
                body = axe
            elif name == "index.html":
                body = asset(name).replace(b"</body>", LOOK.encode())
            elif name == "api/sessions":
                body = json.dumps([{"id": each, "title": each, **row} for each in docs]).encode()
            elif name == "api/session":
                query = parse_qs(parts.query)
                made = None if "known" in query else dressed(document(docs[query["id"][0]]))
                body = json.dumps(made).encode()
            else:
                body = asset(name)
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", PLACES)
async def test_nobody_is_kept_out(checked: str, place: str, scheme: str, tmp_path: Path) -> None:
    command = [
        *(browser(), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
        *(f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=12000"),
        f"--blink-settings=preferredColorScheme={int(scheme == 'light')}",
        checked + place,
    ]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=True, timeout=90
    )
    said = re.search(r"<title>axe: (.*?)</title>", done.stdout)
    assert said, done.stdout[:2000]
    assert json.loads(said[1].replace("&gt;", ">")) == []
