"""From the start of the process to its first request: ``crow run`` beside a bare loop over httpx2.

Both are started in turn, in an empty home, against one server on loopback that notes when the head
of a request has arrived. The ratio is the one of the medians; it should stay under 2.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from queue import SimpleQueue

ROUNDS = 15
BARE = [sys.executable, str(Path(__file__).with_name("bare_loop.py")), "hello"]
CROW = [str(Path(sys.executable).with_name("crow")), "run", "hello"]
BODY = b'data: {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\n'
ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(BODY) + 14, BODY + b"data: [DONE]\n\n")
)
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def serve(server: socket.socket, arrivals: SimpleQueue[float]) -> None:
    """Answer every prompt, note when its head was there, and have nothing for other questions."""
    while True:
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as sent:
            asked = sent.readline()
            head = [line.lower() for line in iter(sent.readline, b"\r\n")]
            if not asked.startswith(b"POST"):
                connection.sendall(NOT_FOUND)
                continue
            arrivals.put(time.perf_counter())
            length = b"content-length: "
            sent.read(sum(int(line[len(length) :]) for line in head if line.startswith(length)))
            connection.sendall(ANSWER)


def start(argv: list[str], env: dict[str, str], cwd: str, arrivals: SimpleQueue[float]) -> float:
    """Seconds from the start of a process to its first request."""
    began = time.perf_counter()
    ended = subprocess.run(argv, env=env, cwd=cwd, capture_output=True, check=True)
    assert b"hi" in ended.stdout, ended
    return arrivals.get(timeout=10) - began


def main() -> None:
    arrivals: SimpleQueue[float] = SimpleQueue()
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(server, arrivals), daemon=True).start()
    with tempfile.TemporaryDirectory() as home:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        env = {"PATH": os.environ["PATH"], "HOME": home, "CROW_BASE_URL": url, "CROW_MODEL": "m"}
        times: dict[str, list[float]] = {"bare": [], "crow": []}
        for _ in range(ROUNDS + 1):
            times["bare"].append(start(BARE, env, home, arrivals))
            times["crow"].append(start(CROW, env, home, arrivals))
    bare, crow = (statistics.median(each[1:]) * 1e3 for each in times.values())
    print(f"cold start to first request   bare {bare:.0f} ms   crow {crow:.0f} ms", end="   ")
    print(f"ratio {crow / bare:.2f}")


if __name__ == "__main__":
    main()
