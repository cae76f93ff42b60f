"""One run of one agent, measured from outside: when it asked, what it cost, what it held."""

from __future__ import annotations

import json
import os
import resource
import signal
import statistics
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.peers.acp import CAPABILITIES, Client
from benchmarks.peers.agents import KEPT, Peer

LIMIT = 600.0
SPARED: set[int] = set()
"""Processes that are no agent's."""


@dataclass
class Measured:
    """A run; times in milliseconds, memory in megabytes.

    ``cpu`` is in seconds, ``user`` the part of it that is not the system's.
    """

    first: float = 0.0
    wall: float = 0.0
    cpu: float = 0.0
    user: float = 0.0
    memory: float = 0.0
    gaps: list[float] = field(default_factory=list)
    request_bytes: int = 0
    request: Any = None
    phases: dict[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """The median of the times from an answer to the next request."""
        return statistics.median(self.gaps) if self.gaps else 0.0


class FailedError(Exception):
    """A run that did not do what the scene says; the text says why."""


class Bench:
    """Runs agents against the server at ``port``."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._runs = 0

    def run(self, peer: Peer, turns: int = 0, pieces: int = 0) -> Measured:
        """A prompt without a client."""
        return self._measure(peer, turns, pieces, peer.run, play_alone)

    def acp(self, peer: Peer, turns: int = 0, pieces: int = 0) -> Measured:
        """A prompt over the Agent Client Protocol."""
        return self._measure(peer, turns, pieces, peer.acp, play_with_client)

    def _measure(
        self,
        peer: Peer,
        turns: int,
        pieces: int,
        template: list[str],
        play: Callable[
            [Peer, list[str], dict[str, str], str], tuple[float, float, dict[str, float]]
        ],
    ) -> Measured:
        self._runs += 1
        name = f"{os.getpid()}-{self._runs}"  # nothing that an agent could take up: its own name
        end = peer.end
        prompt = f"PLAY turns={turns} pieces={pieces} end={end} run={name}"
        command = peer.command(template, self.port, prompt)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with memory() as peak:
            began, prompted, phases = play(peer, command, peer.environ(self.port), prompt)
            wall = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user = after.ru_utime - before.ru_utime
        report = self._report(name)
        if not report or not report["finished"] or report["done"] != turns:
            raise FailedError(f"{report['done'] if report else 0} of {turns} turns")
        asked: list[Any] = [each for each in report["asked"] if each[3]]
        if not asked:
            raise FailedError("no request with a tool that runs commands")
        first = (asked[0][0] - began) * 1e3
        if phases:
            phases["first"] = (asked[0][0] - prompted) * 1e3
        return Measured(
            first=first,
            wall=wall * 1e3,
            cpu=user + after.ru_stime - before.ru_stime,
            user=user,
            memory=peak[0] / 1e6,
            gaps=[(late[0] - early[1]) * 1e3 for early, late in pairwise(asked)],
            request_bytes=asked[0][2],
            request=report["first"],
            phases=phases,
        )

    def _report(self, name: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/report/{name}") as response:
            return json.load(response)


def play_alone(
    peer: Peer, command: list[str], env: dict[str, str], prompt: str
) -> tuple[float, float, dict[str, float]]:
    """Start an agent with its prompt and wait for its end."""
    with log(peer) as out:
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=peer.cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        wait(process, LIMIT)
    return began, began, {}


def play_with_client(
    peer: Peer, command: list[str], env: dict[str, str], prompt: str
) -> tuple[float, float, dict[str, float]]:
    """Start an agent, introduce a client, open a session, prompt it."""
    with log(peer) as out:
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=peer.cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=out,
            start_new_session=True,
        )
        client = Client(process)
        try:
            client.call(
                "initialize", {"protocolVersion": 1, "clientCapabilities": CAPABILITIES}, 60
            )
            initialized = time.monotonic() - began
            opened, session = client.call(
                "session/new", {"cwd": str(peer.cwd), "mcpServers": []}, 60
            )
            about = {"sessionId": session["sessionId"]}
            if peer.acp_mode:
                client.call("session/set_mode", {**about, "modeId": peer.acp_mode}, 60)
            prompted = time.monotonic()
            text = [{"type": "text", "text": prompt}]
            client.call("session/prompt", {**about, "prompt": text}, LIMIT)
        except (OSError, EOFError, RuntimeError, TimeoutError) as error:
            raise FailedError(str(error)) from error
        finally:
            end(process)
    return began, prompted, {"initialize": initialized * 1e3, "new": opened * 1e3}


def end(process: subprocess.Popen[bytes]) -> None:
    """Close an agent's input and wait for its end, which some do not come to."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):
        process.stdin.close()
    wait(process, 3)
    process.stdout.close()


def wait(process: subprocess.Popen[bytes], limit: float) -> None:
    """Wait for an agent's end, and end what it left behind."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(limit)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def log(peer: Peer) -> Iterator[Any]:
    """A file for what an agent prints."""
    (KEPT / "logs").mkdir(parents=True, exist_ok=True)
    with (KEPT / "logs" / f"{peer.name}.log").open("wb") as file:
        yield file


@contextmanager
def memory() -> Iterator[list[float]]:
    """The largest sum of what all children held (PSS), looked at twenty times a second."""
    peak = [0.0]
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.05):
            peak[0] = max(peak[0], sum(held(pid) for pid in descendants(os.getpid())))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        stop.set()
        watcher.join()


def descendants(pid: int) -> Iterator[int]:
    """All processes below one, the server of this bench left out; some end meanwhile."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(each) for task in tasks for each in (task / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        if child not in SPARED:
            yield child
            yield from descendants(child)


def held(pid: int) -> int:
    """Bytes that a process holds, shared pages by their share."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
