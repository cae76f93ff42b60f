"""Messages for a client over HTTP, each on the stream where the client looks for it.

The rules are those of the proposal for remote transports and of the official libraries: a session's
messages go on its own stream; what opens a session, its replay included, on the connection's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Any

from crow.acp.jsonrpc import Message, as_object
from crow.acp.listen.stream import Stream
from crow.acp.send_queue import Build

OPENS = frozenset({"session/load", "session/resume"})
NEEDS_SESSION = frozenset(
    {
        "session/set_mode",
        "session/set_config_option",
        "session/prompt",
        "session/cancel",
        "session/close",
    }
)
"""The methods whose requests name their session in a header too."""
MOST = 256
"""Streams that a client can open before it has sessions for them."""


class Delivery:
    """A `crow.acp.send_queue.MessageSink` in front of several streams.

    ``main`` is the connection's, ``sessions`` are those of its sessions by id. ``seen`` is when
    the client was last heard of.
    """

    def __init__(self) -> None:
        self.main = Stream()
        self.sessions: dict[str, Stream] = {}
        self.seen = asyncio.get_running_loop().time()
        self._answers: dict[Any, str] = {}
        self._opening: dict[Any, str] = {}

    def stream(self, session_id: str | None) -> Stream | None:
        """A session's stream, or the connection's; None where there are too many.

        The stream may be opened before the session is: one client waits for the answer that tells
        of the session, another one makes sure of the stream before it asks.
        """
        if session_id is None:
            return self.main
        if session_id not in self.sessions and len(self.sessions) >= MOST:
            return None
        return self.sessions.setdefault(session_id, Stream())

    # where messages go

    def expect(self, request: Message) -> None:
        """Remember where the answer to a request will have to go."""
        session_id = as_object(request.get("params")).get("sessionId")
        if "method" not in request or "id" not in request or not isinstance(session_id, str):
            return
        if request["method"] in OPENS:
            self._opening[request["id"]] = session_id
        elif session_id in self.sessions:
            self._answers[request["id"]] = session_id

    def post(self, message: Message, key: Hashable = None) -> None:
        """Queue a message."""
        self._stream_of(message).queue.post(message, key)

    def post_text(self, build: Build, text: str, key: Hashable) -> None:
        """Queue text."""
        self._stream_of(build("")).queue.post_text(build, text, key)

    def _stream_of(self, message: Message) -> Stream:
        if "method" not in message:
            return self._stream_of_answer(message)
        session_id = str(as_object(message.get("params")).get("sessionId"))
        if session_id in self._opening.values():
            return self.main
        return self.sessions.get(session_id, self.main)

    def _stream_of_answer(self, message: Message) -> Stream:
        request_id = message.get("id")
        opened = as_object(message.get("result")).get("sessionId")
        loaded = self._opening.pop(request_id, None)
        if loaded is not None:
            opened = loaded if "result" in message else None
        if isinstance(opened, str):
            self.sessions.setdefault(opened, Stream())
            return self.main
        asked_in = self._answers.pop(request_id, "")
        return self.sessions.get(asked_in, self.main)

    # all streams together

    @property
    def streams(self) -> list[Stream]:
        """The connection's stream and the sessions'."""
        return [self.main, *self.sessions.values()]

    @property
    def is_watched(self) -> bool:
        """True while the client reads one of the streams."""
        return any(stream.reader is not None for stream in self.streams)

    @property
    def has_room(self) -> bool:
        """True where `room` would not wait."""
        return all(stream.queue.has_room for stream in self.streams)

    async def room(self) -> None:
        """Wait while more is queued than the client could take yet."""
        while not self.has_room:
            for stream in self.streams:
                await stream.queue.room()

    async def drained(self) -> None:
        """Wait until everything was written."""
        for stream in self.streams:
            await stream.queue.drained()

    def close(self) -> None:
        """Take nothing more, and let nobody wait."""
        for stream in self.streams:
            stream.close()
