"""A web server by hand that answers each message as its first argument, JSON, says.

Keys are methods; values are lists of answers, the last of which is given for ever. An answer is
``status``, ``type`` and ``body`` (``ID`` stands for the request's id), or ``result`` or ``error``.
What is not in the table is answered with status 404. Prints its port, then a line a request.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SPEC: dict[str, list[dict[str, Any]]] = json.loads(sys.argv[1])


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a message."""
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {key.lower(): value for key, value in self.headers.items()}
        headers = {key: value for key, value in headers.items() if key.startswith("mcp-")}
        print(json.dumps({"headers": headers, **message}), flush=True)
        self.answer(message.get("method", ""), message)

    def do_GET(self) -> None:
        """Answer whoever wants a stream of events."""
        self.answer("GET", {})

    def answer(self, method: str, message: dict[str, Any]) -> None:
        """Answer with what the table has."""
        answers = SPEC.get(method) or [{"status": 202 if "id" not in message and message else 404}]
        told = answers.pop(0) if len(answers) > 1 else answers[0]
        body = told.get("body", "")
        if "result" in told or "error" in told:
            body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **told})
        text = body.replace("ID", json.dumps(message.get("id"))).encode()
        self.send_response(told.get("status", 200))
        self.send_header("content-type", told.get("type", "application/json"))
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Nothing but what is printed above."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
