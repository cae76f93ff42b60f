"""The two ends of a pipe to a client: a thread that reads lines, a thread that writes them.

Works before any event loop runs, so that ``initialize`` is answered while the rest is still being
imported, and notices the end of input even while the loop is busy.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections import deque
from contextlib import suppress
from queue import SimpleQueue
from threading import Event, Semaphore, Thread
from typing import TYPE_CHECKING, Any

from crow.acp.initialize import OPENING, PRESUMED, AgentCapabilities, initialize
from crow.acp.jsonrpc import (
    CANCEL,
    REQUEST_CANCELLED,
    Lines,
    Message,
    Oversized,
    as_object,
    decode,
    encode,
    failure,
    is_id,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

CHUNK = 65536
BACKLOG = 256
START = 30.0


class StdioTransport:
    """A client at the other end of two file descriptors, which belong to the link from now on.

    Answers ``initialize`` and what is no message by itself; ``hello`` holds the parameters of the
    last ``initialize``. Everything else comes out of `receive`, but requests that were taken back
    before. With ``last_gasp`` the process is ended that many seconds after `hang_up` (and after
    `start`), whatever it still does, unless `close` came first; with ``is_command`` at once, where
    a client that has greeted leaves before `start`, and has asked for nothing that is of use to it
    then. ``parent`` is the process that had started this one when the link was made, ``loss`` why
    nothing can be written to a client that has not left.
    """

    def __init__(
        self,
        source: int,
        sink: int,
        offer: AgentCapabilities,
        *,
        last_gasp: float | None = None,
        is_command: bool = False,
    ) -> None:
        self.offer = offer
        self.is_command = is_command
        self.hello: Message = {}
        self.parent = os.getppid()
        self.loss: OSError | None = None
        self._source = source
        self._sink = sink
        self._hung_up: SimpleQueue[None] = SimpleQueue()  # a signal may put, whatever it interrupts
        self._inbox: deque[Message | None] = deque()
        self._space = Semaphore(BACKLOG)
        self._outgoing: SimpleQueue[tuple[bytes, Callable[[], object] | None] | None] = (
            SimpleQueue()
        )
        self._outgoing_space = Semaphore(BACKLOG)
        self._closed = Event()
        self._started = Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: Callable[[], object] | None = None
        Thread(target=self._read, name="crow-acp-reader", daemon=True).start()
        self._writer = Thread(target=self._write, name="crow-acp-writer", daemon=True)
        self._writer.start()
        if last_gasp is not None:
            Thread(target=self._end, args=(last_gasp,), name="crow-acp-end", daemon=True).start()

    async def receive(self) -> Message | None:
        """The next message; None at the end, and from then on."""
        import asyncio

        news = asyncio.Event()
        self._loop, self._wake = asyncio.get_running_loop(), news.set
        while True:
            with suppress(IndexError):
                message = self._inbox.popleft()
                break
            await news.wait()
            news.clear()
        if message is None:
            self._inbox.appendleft(None)
        else:
            self._space.release()
        return message

    def send(self, data: bytes, written: Callable[[], object] | None = None) -> None:
        """Write when all before it is written; then ``written`` is called, from the event loop."""
        self._outgoing.put((data, written))

    def start(self) -> None:
        """From now on messages are worked on; the end of input leaves little time for them."""
        self._started.set()

    def hang_up(self) -> None:
        """Behave as if the client had gone. A signal may call this, too."""
        self._hung_up.put(None)
        self._deliver(None)

    def close(self) -> None:
        """Write nothing more, and let the process live on after the end of input."""
        self._closed.set()
        self._outgoing.put(None)

    def report(self) -> int:
        """Say on standard error why the client could not be written to; the exit status."""
        if self.loss is None:
            return 0
        why = f"crow: nothing can be written to the client: {self.loss.strerror}\n"
        with suppress(OSError):
            os.write(2, why.encode())
        return 1

    # the reader's thread

    def _read(self) -> None:
        lines = Lines()
        while chunk := self._chunk():
            for line in lines.feed(chunk):
                self._take(line)
        for line in lines.rest():
            self._take(line)
        self.hang_up()

    def _chunk(self) -> bytes:
        while True:
            try:
                return os.read(self._source, CHUNK)
            except BlockingIOError:
                select.select([self._source], [], [])
            except OSError:
                return b""

    def _take(self, line: bytes | Oversized) -> None:
        message, reply = decode(line)
        if message is not None and message.get("method") == "initialize" and "id" in message:
            message, reply = None, self._greet(message)
        elif message is not None and not self.hello and "method" in message and "id" in message:
            self.hello = PRESUMED
        elif message is not None and message.get("method") == CANCEL and self._take_back(message):
            return
        if reply is not None:
            self._outgoing_space.acquire()
            self._outgoing.put((encode(reply), None))
        if message is not None:
            self._space.acquire()
            self._deliver(message)

    def _greet(self, request: Message) -> Message:
        reply = initialize(request, self.offer, self.hello)
        if "result" in reply:
            self.hello = request["params"]
        return reply

    def _take_back(self, cancel: Message) -> bool:
        """Answer a request that its client takes back, if nobody has begun with it."""
        request_id = as_object(cancel.get("params")).get("requestId")
        return is_id(request_id) and self._refuse(
            lambda each: "method" in each and "id" in each and each["id"] == request_id
        )

    def _refuse(self, is_meant: Callable[[Message], bool]) -> bool:
        """Answer requests that nobody has begun with as cancelled; False where there are none."""
        refused = 0
        for each in list(self._inbox):
            if each is not None and is_meant(each):
                with suppress(ValueError):  # somebody has begun meanwhile
                    self._inbox.remove(each)
                    reply = failure(each["id"], REQUEST_CANCELLED, "Request cancelled")
                    self._outgoing.put((encode(reply), lambda: None))
                    self._space.release()
                    refused += 1
        return refused > 0

    def _deliver(self, message: Message | None) -> None:
        self._inbox.append(message)
        if self._wake is not None:
            self._call(self._wake)

    def _call(self, callback: Callable[[], Any]) -> None:
        """Have the event loop call something, if it still runs."""
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            self._loop = None

    # the thread that ends the process

    def _is_wanted(self) -> bool:
        self._refuse(lambda each: "id" in each and each.get("method") in OPENING)
        is_asked = any(message is not None for message in list(self._inbox))
        return is_asked or self._started.is_set()  # in this order: who starts takes the first

    def _end(self, last_gasp: float) -> None:
        self._hung_up.get()
        if self.is_command and self.hello and not self._is_wanted():
            self._outgoing.put(None)
            self._writer.join(last_gasp)
            os._exit(self.report())
        self._started.wait(START)
        if not self._closed.wait(last_gasp):
            os._exit(self.loss is not None)

    # the writer's thread

    def _write(self) -> None:
        is_broken = False
        while (item := self._outgoing.get()) is not None:
            data, written = item
            if not is_broken and not self._write_all(data):
                is_broken = True
                self.hang_up()
            if written is None:
                self._outgoing_space.release()
            else:
                self._call(written)

    def _write_all(self, data: bytes) -> bool:
        """False where nobody reads any more."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._sink, rest) :]
            except BlockingIOError:
                select.select([], [self._sink], [])
            except OSError as error:
                if not isinstance(error, BrokenPipeError):
                    self.loss = error
                return False
        return True


def endings() -> list[signal.Signals]:
    """The signals that end the process; not one that it was started to ignore, as by nohup."""
    if sys.platform == "win32":
        return []
    known = (signal.SIGTERM, signal.SIGHUP)
    return [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]


def hearing_signals(open_link: Callable[[], StdioTransport]) -> StdioTransport:
    """A link that hangs up at a signal from its first answer on, before there is an event loop."""
    heard = endings()
    if heard:
        signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    link = open_link()

    def hear(*_: object) -> None:
        link.hang_up()

    for number in heard:
        signal.signal(number, hear)
    if heard:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, heard)
    return link


def claim_stdio() -> tuple[int, int]:
    """Keep standard input and output for the protocol alone; their new file descriptors.

    What prints from now on, child processes included, prints to standard error, and who reads
    standard input finds it empty.
    """
    sink = os.dup(1)
    source = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    os.close(nothing)
    return source, sink
