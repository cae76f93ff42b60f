"""The life of `crow acp` over real pipes: whatever comes when, nobody waits and nothing is lost.

A client opens and loads sessions, prompts, answers questions or does not, cancels, writes garbage,
stops reading, ends its input, hangs up or kills; and begins again where it was. Held are: no request
is unanswered for longer than `PATIENCE` seconds, but for a prompt whose user is asked or whose
command runs; every request has one answer; what was answered once is there after every end.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.chaos.faults import PATIENCE

CROW = str(Path(sys.executable).with_name("crow"))
START = 60  # seconds until the process has begun, on a machine that does other things as well
SESSIONS = 3
GARBAGE = (b"{", b"\xff\xfe", b"[" * 5000, b'{"jsonrpc":"2.0","id":', b"\x00" * 70_000, b"hello")
ENDS = ["end of input", "SIGTERM", "SIGKILL"]
if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as by nohup, which Crow heeds, too
    ENDS.append("SIGHUP")
LONG = "Run the command `touch begun && sleep 600`"
SHORT = "Run the command `touch made`"


class Process:
    """The command, and what came from it; a thread reads, when it is let."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self.received: list[dict[str, Any]] = []
        self.reading = threading.Event()
        self.reading.set()
        self.is_over = False
        self._news = threading.Condition()
        with (home / "stderr").open("ab") as stderr:
            self.popen = subprocess.Popen(
                [CROW, "acp"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=home,
                env=environment,
                start_new_session=True,
            )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        while line := self.popen.stdout.readline():
            with self._news:
                self.received.append(json.loads(line))
                self._news.notify_all()
            self.reading.wait()
        with self._news:
            self.is_over = True
            self._news.notify_all()

    def write(self, line: bytes) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(line + b"\n")
        self.popen.stdin.flush()

    def until(self, what: Callable[[], bool], seconds: float, why: str) -> None:
        with self._news:
            assert self._news.wait_for(what, seconds), f"{why}: {self.received[-5:]}"

    def answer(self, number: int) -> dict[str, Any] | None:
        found = [m for m in self.received if "method" not in m and m.get("id") == number]
        assert len(found) < 2, found
        return found[0] if found else None

    @property
    def garbage(self) -> int:
        """Answers to what was no message."""
        return sum("method" not in m and m.get("id", 0) is None for m in self.received)

    def end(self, how: str) -> int:
        self.reading.set()
        assert self.popen.stdin is not None
        if how == "end of input":
            self.popen.stdin.close()
        else:
            self.popen.send_signal(signal.Signals[how])
        status = self.popen.wait(START)
        self.until(lambda: self.is_over, PATIENCE, "the output has an end")
        self.close()
        return status

    def close(self) -> None:
        """Let nothing of it stay."""
        self.reading.set()
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        self._thread.join()
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


@dataclass
class Talk:
    """A session as its client knows it."""

    id: str
    cwd: Path
    said: list[str] = field(default_factory=list[str])  # prompts that were answered
    waiting: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    asked: int | str | None = None  # the question that is open
    is_busy: bool = False  # its command runs, and will for long
    is_open: bool = True  # in the process that runs now


class Life(RuleBasedStateMachine):
    """What may happen to the process, in any order."""

    home: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(self.home, str(time.monotonic_ns()))
        self.folder.mkdir(parents=True)
        self.environment = {**os.environ, "HOME": str(self.folder)}
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            self.environment.pop(name, None)
        self.talks: list[Talk] = []
        self.numbers = 0
        self.noise = 0
        self.begin()

    def begin(self) -> None:
        """Start the process, as the client does at first, and after each end."""
        self.process = Process(self.folder, self.environment)
        self.noise = 0
        greeting = {"protocolVersion": 1, "clientCapabilities": {}}
        self.wait_for(self.ask("initialize", greeting), START)

    def ask(self, method: str, params: dict[str, Any]) -> int:
        self.numbers += 1
        message = {"jsonrpc": "2.0", "id": self.numbers, "method": method, "params": params}
        self.process.write(json.dumps(message).encode())
        return self.numbers

    def wait_for(self, number: int, seconds: float = PATIENCE) -> dict[str, Any]:
        self.process.until(
            lambda: self.process.answer(number) is not None,
            seconds,
            f"request {number} is answered",
        )
        answer = self.process.answer(number)
        assert answer is not None
        assert "result" in answer, answer
        return answer["result"]

    def opened(self, talk: Talk) -> Talk:
        """The session, loaded where the process is a new one."""
        if not talk.is_open:
            self.load(talk)
        return talk

    def load(self, talk: Talk) -> None:
        before = len(self.process.received)
        params = {"sessionId": talk.id, "cwd": str(talk.cwd), "mcpServers": []}
        self.wait_for(self.ask("session/load", params))
        talk.is_open = True
        told = [
            m["params"]["update"]["content"]["text"]
            for m in self.process.received[before:]
            if m.get("method") == "session/update"
            and m["params"]["update"]["sessionUpdate"] == "user_message_chunk"
        ]
        assert not Counter(talk.said) - Counter(told), (talk.said, told)

    @property
    def is_read(self) -> bool:
        return self.process.reading.is_set()

    def idle(self) -> list[Talk]:
        return [talk for talk in self.talks if not talk.waiting]

    # what may happen

    @precondition(lambda self: self.is_read and len(self.talks) < SESSIONS)
    @rule()
    def new(self) -> None:
        cwd = self.folder / f"project{len(self.talks)}"
        cwd.mkdir()
        result = self.wait_for(self.ask("session/new", {"cwd": str(cwd), "mcpServers": []}))
        self.talks.append(Talk(result["sessionId"], cwd))

    @precondition(lambda self: self.is_read and self.idle())
    @rule(data=st.data())
    def load_again(self, data: st.DataObject) -> None:
        self.load(data.draw(st.sampled_from(self.idle())))

    @precondition(lambda self: self.talks and self.is_read)
    @rule(data=st.data(), work=st.sampled_from(["", SHORT, LONG]))
    def prompt(self, data: st.DataObject, work: str) -> None:
        talk = self.opened(data.draw(st.sampled_from(self.talks)))
        text = work or f"Words {self.numbers}"
        prompt = [{"type": "text", "text": text}]
        number = self.ask("session/prompt", {"sessionId": talk.id, "prompt": prompt})
        talk.waiting.append((number, text))

    @precondition(lambda self: any(talk.asked is not None for talk in self.talks))
    @rule(data=st.data(), choice=st.sampled_from(["allow_once", "reject_once"]))
    def answer(self, data: st.DataObject, choice: str) -> None:
        talk = data.draw(st.sampled_from([t for t in self.talks if t.asked is not None]))
        outcome = {"outcome": {"outcome": "selected", "optionId": choice}}
        self.process.write(
            json.dumps({"jsonrpc": "2.0", "id": talk.asked, "result": outcome}).encode()
        )
        talk.asked = None
        talk.is_busy = choice == "allow_once" and talk.waiting[0][1] == LONG

    @precondition(lambda self: any(talk.waiting for talk in self.talks))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        talk = data.draw(st.sampled_from([t for t in self.talks if t.waiting]))
        self.process.write(
            json.dumps(
                {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": talk.id}}
            ).encode()
        )
        talk.asked, talk.is_busy = None, False
        for number, _ in talk.waiting if self.is_read else ():
            self.wait_for(number)

    @rule(noise=st.sampled_from(GARBAGE))
    def write_garbage(self, noise: bytes) -> None:
        self.process.write(noise)
        self.noise += 1

    @rule()
    def stop_reading(self) -> None:
        self.process.reading.clear()

    @rule()
    def read_on(self) -> None:
        self.process.reading.set()

    @rule(how=st.sampled_from(ENDS))
    def end(self, how: str) -> None:
        status = self.process.end(how)
        if how != "SIGKILL":
            assert status == 0, (status, (self.folder / "stderr").read_text()[-2000:])
            for talk in self.talks:
                for number, _ in talk.waiting:
                    assert self.process.answer(number) is not None, (how, number)
        for talk in self.talks:
            self.settle(talk)
            talk.waiting, talk.asked, talk.is_busy, talk.is_open = [], None, False, False
        self.begin()

    # what holds

    def settle(self, talk: Talk) -> None:
        """Note which of its prompts were answered."""
        answered = [pair for pair in talk.waiting if self.process.answer(pair[0]) is not None]
        for number, text in answered:
            answer = self.process.answer(number)
            assert answer is not None
            assert "result" in answer, answer
            if answer["result"]["stopReason"] == "end_turn":
                talk.said.append(text)
        talk.waiting = [pair for pair in talk.waiting if pair not in answered]

    def question(self, talk: Talk) -> int | str | None:
        """The question that was asked of its user last, unless it was answered."""
        asked = [
            m["id"]
            for m in self.process.received
            if m.get("method") == "session/request_permission"
            and m["params"]["sessionId"] == talk.id
        ]
        fresh = [each for each in asked if (talk.id, each) not in self.seen]
        self.seen.update((talk.id, each) for each in fresh)
        return fresh[-1] if fresh else None

    @property
    def seen(self) -> set[tuple[str, Any]]:
        return self.process.__dict__.setdefault("seen", set())

    @invariant()
    def nobody_waits(self) -> None:
        if not self.is_read:
            return
        self.process.until(
            lambda: self.process.garbage >= self.noise, PATIENCE, "garbage is answered"
        )
        for talk in self.talks:
            while talk.waiting and talk.asked is None and not talk.is_busy:
                first = talk.waiting[0][0]
                self.process.until(
                    lambda first=first, talk=talk: (
                        self.process.answer(first) is not None or self._is_asked(talk)
                    ),
                    PATIENCE,
                    f"prompt {first} goes on",
                )
                talk.asked = self.question(talk)
                self.settle(talk)

    def _is_asked(self, talk: Talk) -> bool:
        return any(
            m.get("method") == "session/request_permission"
            and m["params"]["sessionId"] == talk.id
            and (talk.id, m["id"]) not in self.seen
            for m in self.process.received
        )

    def teardown(self) -> None:
        self.process.close()


def play(tmp_path: Path, examples: int, steps: int) -> None:
    machine = type("Life", (Life,), {"home": tmp_path})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nobody_waits_and_nothing_is_lost(tmp_path: Path) -> None:
    play(tmp_path, 3, 12)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_nobody_waits_and_nothing_is_lost_for_a_long_time(tmp_path: Path) -> None:
    faulthandler.cancel_dump_traceback_later()  # it takes minutes, and does not hang
    play(tmp_path, 60, 30)
