"""A real server hears that the agent waits, and that it is done; one that is not there costs nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Queue

import pytest
from tests.examples.test_examples import load

from crow.testing import Pilot, call


@pytest.fixture
def heard() -> Iterator[tuple[str, Queue[dict[str, str]]]]:
    messages: Queue[dict[str, str]] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", messages
    server.shutdown()
    thread.join()
    server.server_close()


def test_somebody_hears_of_it(crow: Pilot, heard: tuple[str, Queue[dict[str, str]]]):
    url, messages = heard
    crow.use(load("notify").Notify(url, after=0))
    crow.user.answers("allow_once")
    crow.run("Go", call("Bash", command="touch a"), "Done.")
    told = [messages.get(timeout=10), messages.get(timeout=10)]
    assert [each["why"] for each in told] == ["permission_prompt", "end_turn"]
    assert told[0]["text"] == f"Crow waits for you in {crow.cwd.name}"


def test_a_server_that_is_not_there_costs_nothing(crow: Pilot):
    crow.use(load("notify").Notify("http://127.0.0.1:9/", after=0))
    crow.run("Hi", "Hello.")
    crow.told("Hello.")
    crow.close()
    crow.failed("Connection refused", by="notify")
