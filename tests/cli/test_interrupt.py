"""Ctrl-C while a command waits for something that may never come."""

from __future__ import annotations

import subprocess
import sys

WAITS = """
import asyncio, signal, threading
from crow.cli.interrupt import run_async

def give() -> None:
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

async def wait() -> None:
    loop = asyncio.get_running_loop()
    loop.call_soon(threading.Timer(0.3, give).start)
    await loop.create_future()

try:
    run_async(wait())
except KeyboardInterrupt:
    print("ended")
"""


def test_a_signal_that_another_thread_was_given_ends_what_waits() -> None:
    done = subprocess.run([sys.executable, "-c", WAITS], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("ended\n", "")
