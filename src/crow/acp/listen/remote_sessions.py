"""A client's sessions on other nodes: opened on this one, or on the one that has them at work.

A session is worked on by one node, the one that holds its lease. A client that asks another one
for it is connected to that node by this one: requests that name the session go there, and what
happens there comes here. A session that nobody uses there is let go, and opened here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from crow.acp.connection import Connection, Methods, Result
from crow.acp.errors import Refusal, in_use
from crow.acp.initialize import DRAFT_VERSION, version_of
from crow.acp.jsonrpc import INTERNAL_ERROR, Message, Sent
from crow.acp.listen.node import LET_GO
from crow.acp.listen.upstream import UnreachableError, Upstream
from crow.acp.turn import over
from crow.core.errors import SessionInUse

if TYPE_CHECKING:
    from crow.acp.connection import Transport
    from crow.acp.listen.node import Node
    from crow.acp.outgoing import ContentBlock, PromptResponse
    from crow.acp.words import Update

STORED = ("session/load", "session/resume")
OPENS = (*STORED, "session/new", "session/fork")
LEAVES = ("session/close", "session/delete", "session/archive")
PLACE = ("cwd", "additionalDirectories", "mcpServers")
PAUSE = 0.5
MARGIN = 2.0
"""Seconds by which the end of a lease is seen to move where its holder renews it."""
TRIES = 60
"""How often a session is tried to be had; in half a minute a lease ends, or is renewed."""
GONE = "The node that worked on this session ({url}) is gone: it goes on here."
UNKNOWN = " What ran there has an unknown outcome."
CUT = "the node that worked on this is gone"


class Lease:
    """A lease seen from afar: that it runs out, or that somebody renews it."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._end = float("inf")

    def is_renewed(self, left: float) -> bool:
        """True where it lasts longer than it was said to when it was first looked at."""
        end = self._clock() + left
        self._end = min(self._end, end + MARGIN)
        return end > self._end


class RemoteSessions:
    """The methods for one client of this node; a `crow.acp.connection.Methods`.

    ``here`` answers for sessions of this node, ``client`` is the connection with the client, which
    ``transport`` knows the greeting of.
    """

    def __init__(self, here: Methods, transport: Transport, client: Connection, node: Node) -> None:
        self._here = here
        self._transport = transport
        self._client = client
        self._node = node
        self._upstreams: dict[str, Upstream] = {}
        self._there: dict[str, Upstream] = {}
        self._opened: dict[str, Message] = {}
        self._moving: dict[str, asyncio.Task[None]] = {}
        self._reaching = asyncio.Lock()

    async def answer(self, method: str, params: Message) -> Sent | None:
        """The result of a request, from wherever its session is. Raises `Refusal`."""
        session_id = str(params.get("sessionId"))
        await self._settled(session_id)
        if method in OPENS:
            result = await self._open(method, params)
            opened = str(result.get("sessionId", session_id))
            self._opened[opened] = {name: params[name] for name in PLACE if name in params}
            return result
        try:
            result = await self._answered(method, params, session_id)
        except UnreachableError as error:
            return await self._cut(method, session_id, error)
        if method in LEAVES:
            self._opened.pop(session_id, None)
            self._there.pop(session_id, None)
        return result

    async def _answered(self, method: str, params: Message, session_id: str) -> Sent | None:
        upstream = self._there.get(session_id)
        if upstream is None:
            try:
                return await self._here.answer(method, params)
            except Refusal as refusal:
                upstream = await self._reach(holder(refusal).address)
        return await upstream.request(method, params)

    async def notice(self, method: str, params: Message) -> None:
        """Pass a notification on to where its session is; one of no session to all."""
        session_id = params.get("sessionId")
        await self._settled(str(session_id))
        upstream = self._there.get(str(session_id))
        if upstream is not None:
            await upstream.notify(method, params)
            return
        await self._here.notice(method, params)
        if session_id is None:
            for each in self._upstreams.values():
                await each.notify(method, params)

    async def close(self) -> None:
        """The client is gone."""
        for task in self._moving.values():
            task.cancel()
        upstreams, self._upstreams = self._upstreams, {}
        await asyncio.gather(*(each.close() for each in upstreams.values()))

    # opening

    async def _open(self, method: str, params: Message) -> Sent:
        """Open a session here or there; waits out the lease of a node that is gone."""
        held, lease = None, Lease()
        for _ in range(TRIES):
            try:
                result = await self._here.answer(method, params)
            except Refusal as refusal:
                held = holder(refusal)
            else:
                self._there.pop(str(params.get("sessionId")), None)
                return result or {}
            try:
                opened = await self._open_there(method, params, held.address)
            except UnreachableError as error:
                if error.is_alive or lease.is_renewed(held.left):
                    raise in_use(f"{held}; {held.address}: {error}") from error
                await asyncio.sleep(PAUSE)
            else:
                if opened is not None:
                    return opened
        raise in_use(str(held))

    async def _open_there(self, method: str, params: Message, url: str) -> Message | None:
        """Open a session on the node that has it; None where that has let it go."""
        session_id = params["sessionId"]
        upstream = await self._reach(url)
        again = method == "session/load" or params.get("replayFrom") is not None
        wanted = {"sessionId": session_id, "again": again}
        if (await upstream.request(LET_GO, wanted, is_last=False))["isFree"]:
            return None
        result = await upstream.request(method, params)
        self._there[session_id] = upstream
        return result

    async def _reach(self, url: str) -> Upstream:
        """The client's way to a node. Raises `UnreachableError`."""
        async with self._reaching:
            if url not in self._upstreams:
                self._upstreams[url] = await Upstream.reach(
                    self._node, url, self._transport.hello, self._client, self._lose
                )
            return self._upstreams[url]

    # what moves

    def follow(self, taken: set[str]) -> None:
        """Go on with sessions that were open here, and that other nodes have by now."""
        for session_id in taken & self._opened.keys() - self._there.keys():
            self._move(session_id, None)

    def _lose(self, upstream: Upstream) -> None:
        """A node is gone: its sessions go on here, as soon as they are to be had."""
        self._upstreams.pop(upstream.url, None)
        for session_id in [each for each, there in self._there.items() if there is upstream]:
            del self._there[session_id]
            self._move(session_id, upstream)

    def _move(self, session_id: str, before: Upstream | None) -> None:
        moving = self._moving[session_id] = asyncio.create_task(self._take_up(session_id, before))
        moving.add_done_callback(lambda _: self._moving.pop(session_id, None))

    async def _settled(self, session_id: str) -> None:
        """Wait while a session moves."""
        if (moving := self._moving.get(session_id)) is not None:
            await asyncio.wait({moving})

    async def _take_up(self, session_id: str, before: Upstream | None) -> None:
        """Open a session again for the client, which knows it."""
        params: Message = {"sessionId": session_id, "mcpServers": [], **self._opened[session_id]}
        try:
            result = await self._open("session/resume", params)
        except Refusal as refusal:
            self._opened.pop(session_id, None)
            self._tell(session_id, str(refusal.data.get("details") or refusal))
            return
        if isinstance(result, Result):
            result.sent()
        there = self._there.get(session_id)
        if before is not None and (there is None or there.url != before.url):
            ran = before.running.pop(session_id, set())
            for call_id in ran:
                self._client.post(session_id, unknown(call_id))
            self._tell(session_id, GONE.format(url=before.url) + (UNKNOWN if ran else ""))
            self._client.post(session_id, over())

    async def _cut(self, method: str, session_id: str, error: Exception) -> PromptResponse:
        """The answer to a request whose node has gone while it was at it. Raises `Refusal`."""
        await self._settled(session_id)
        if method != "session/prompt" or self._speaks_draft:
            raise Refusal(INTERNAL_ERROR, f"{CUT}: {error}") from error
        return {"stopReason": "end_turn", "_meta": {"crow": {"stopReason": "error", "detail": CUT}}}

    @property
    def _speaks_draft(self) -> bool:
        asked = self._transport.hello.get("protocolVersion")
        return version_of(asked, self._transport.offer) == DRAFT_VERSION

    def _tell(self, session_id: str, said: str) -> None:
        """Tell the user something, in the words of the client's version."""
        update: Update = {"sessionUpdate": "notice", "severity": "warning", "title": said}
        if not self._speaks_draft and not self._client.capabilities.notices:
            content: ContentBlock = {"type": "text", "text": f"\n\n*Warning: {said}*\n\n"}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
        self._client.post(session_id, update)


def holder(refusal: Refusal) -> SessionInUse:
    """Who has a session, and is to be reached; raises the refusal where that is not why."""
    cause = refusal.__cause__
    if isinstance(cause, SessionInUse) and cause.address:
        return cause
    raise refusal


def unknown(call_id: str) -> Update:
    """The update that ends a call of which nobody knows what came of it."""
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "status": "failed",
        "content": [{"type": "content", "content": {"type": "text", "text": "outcome unknown"}}],
    }
