"""One server in one session: a task of its own connects, stays connected and closes it."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import uuid4

from crow import Context, ToolEnvironment
from crow.events import Form
from crow.extensions.mcp.auth.browser import open_page
from crow.extensions.mcp.auth.browser_sign_in import BrowserSignIn
from crow.extensions.mcp.auth.credential_store import CredentialStore
from crow.extensions.mcp.auth.redirect import Listener
from crow.extensions.mcp.auth.sign_in import SignIn, SignInNeeded, needed
from crow.extensions.mcp.call_timeout import Calls, Pulse
from crow.extensions.mcp.definitions import Definitions
from crow.extensions.mcp.description import Description
from crow.extensions.mcp.elicitation import elicit, page_of
from crow.extensions.mcp.failure import (
    Failure,
    Gone,
    PagesWanted,
    Refused,
    plain,
    reason_of,
)
from crow.extensions.mcp.limits import LINES, Limits
from crow.extensions.mcp.tool import McpTool
from crow.keys import PROGRAMS
from crow.ports import BrowserClient, implements, is_attended
from crow.process import ProcessReaper

if TYPE_CHECKING:
    from mcp.types import CallToolResult, GetPromptResult, Prompt, ReadResourceResult

    from crow.extensions.mcp.connection import ServerConnection
    from crow.extensions.mcp.negotiation import ConnectionMode
    from crow.keys import Launcher

    KnownWays = dict[tuple[str, ...], ConnectionMode]

T = TypeVar("T")
logger = logging.getLogger("crow.mcp")
State = Literal["connecting", "ready", "failed"]
STEADY = 30.0
EAGER = 3
LONGEST_DELAY = 8.0
EXPLAINED = 1.0
LONGEST_LINE = 1000
OPEN, LATER = "Open the page", "Not now"
PASTE = "Sign in there. If nothing happens here, paste the address that the browser ended at"


class Server:
    """A server: its state, what it offers, and the one connection that all calls share.

    A connection that ends is made again once, after a pause; calls that come meanwhile wait for
    it, calls that were under way fail, and none is ever repeated.
    """

    def __init__(
        self,
        description: Description,
        ctx: Context,
        limits: Limits,
        definitions: Definitions,
        reaper: ProcessReaper,
        known: KnownWays,
        vault: CredentialStore,
    ) -> None:
        self.description = description
        self.name = description.name
        self.limits = limits
        self.definitions = definitions
        self.reaper = reaper
        self.vault = vault
        self.state: State = "connecting"
        self.error = ""
        self.tools: list[McpTool] = []
        self.prompts: list[Prompt] = []
        self.has_resources = False
        self.uris: list[str] = []
        self.dropped: dict[str, str] = {}
        self.task: asyncio.Task[None] | None = None
        self._known = known
        self._ctx = ctx
        self._link: ServerConnection | None = None
        self._stale: set[str] = set()
        self._settled = asyncio.Event()
        self._wanted = asyncio.Event()
        self._explained = asyncio.Event()
        self._deaths = 0
        self._calls = Calls()
        self._limit: asyncio.Timeout | None = None
        self._signs_in = False
        self._told_roots = ctx.roots
        self.logged: deque[str] = deque(maxlen=LINES)

    # its life

    def start(self) -> None:
        """Connect in the background."""
        self.task = asyncio.create_task(self._live(), name=f"mcp server {self.name}")
        self.task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        """Nobody waits for a server whose task has ended."""
        self.state = "failed"
        if not task.cancelled() and task.exception() is not None:
            self.error = str(task.exception())
        self._settled.set()

    async def settled(self) -> None:
        """Wait until it is ready or has failed."""
        await self._settled.wait()

    def reconnect(self, *, sign_in: bool = False) -> None:
        """Try once more, where it has failed; ask the user to ``sign_in`` where that is wanted."""
        self._signs_in = self._signs_in or sign_in
        if self._settled.is_set() and self._link is None:
            self._settled.clear()
            self.state = "connecting"
            self._wanted.set()

    async def _live(self) -> None:
        await asyncio.to_thread(import_module, "crow.extensions.mcp.connection")
        while True:
            was_up = await self._connect()
            if not was_up or self._deaths > EAGER:
                self.state = "failed"
                self._settled.set()
                await self._wanted.wait()
            self._wanted.clear()
            self.state = "connecting"
            await asyncio.sleep(self._pause())

    def _pause(self) -> float:
        return min(self.limits.backoff * 2 ** max(0, self._deaths - 1), LONGEST_DELAY)

    async def _connect(self) -> bool:
        """Connect, and stay until the connection ends; True where it was up."""
        from crow.extensions.mcp.connection import opened

        failure = Failure()
        loop = asyncio.get_running_loop()
        up_since: float | None = None
        limit = self._limit = asyncio.timeout(self.limits.connect)
        reason = "the connection ended"
        try:
            async with limit, opened(self, failure) as link:
                await self._read(link, {"tools", "prompts"})
                limit.reschedule(None)
                self._limit = None
                up_since = loop.time()
                self._up(link)
                await link.gone.wait()
                self._down()
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - the library's task groups
            _stop_if_cancelled()
            reason = reason_of(error)
            if limit.expired():
                reason = f"it did not answer within {self.limits.connect:g} s"
        finally:
            self._down()
        lived = 0.0 if up_since is None else loop.time() - up_since
        self._deaths = 0 if lived > STEADY else self._deaths + 1
        await self._tell(failure, reason, was_up=up_since is not None)
        return up_since is not None

    def _up(self, link: ServerConnection) -> None:
        self._link = link
        self.state = "ready"
        self.error = ""
        self._explained.clear()
        self._settled.set()

    def _down(self) -> None:
        self._link = self._limit = None
        self._signs_in = False
        self._settled.clear()
        self.state = "connecting"

    async def _tell(self, failure: Failure, reason: str, *, was_up: bool) -> None:
        self.error = failure.reason(reason)
        self._explained.set()
        what = "was lost" if was_up else "could not be connected"
        text = f"the MCP server {self.name!r} {what}: {failure.explain(reason)}"
        await self._ctx.ui.notify(text, severity="warning")

    # what it offers

    @property
    def about(self) -> dict[str, str]:
        """What it says of itself, and which protocol is spoken; nothing where it is not there."""
        return {} if self._link is None else self._link.about

    async def refresh(self) -> None:
        """Read the lists again that the server said have changed."""
        if self._link is not None and self._told_roots != self._ctx.roots:
            self._told_roots = self._ctx.roots
            await self._link.tell_roots()
        stale, self._stale = self._stale, set()
        if not stale or self._link is None:
            return
        try:
            async with asyncio.timeout(min(self.limits.connect, 5.0)):
                await self._read(self._link, stale)
        except (Gone, Refused, TimeoutError) as error:
            why = str(error) or "it took too long"
            text = f"the MCP server {self.name!r} did not list its {' and '.join(stale)}: {why}"
            await self._ctx.ui.notify(text, severity="warning")

    async def _read(self, link: ServerConnection, what: set[str]) -> None:
        self.has_resources = link.has_resources
        if "tools" in what and link.has_tools:
            self.dropped = {}
            found = [McpTool(self, told) for told in await link.tools()]
            self.tools = [tool for tool in found if self.description.may_have(tool.raw_name)]
        if "resources" in what:
            self._ctx.session.spawn(self.list_resources())
        if "prompts" in what and link.has_prompts:
            try:
                self.prompts = await link.prompts()
            except Refused as error:
                self.prompts = []
                self.dropped["(prompts)"] = str(error)

    async def list_resources(self) -> None:
        """Learn which resources there are, for whoever types; a server that fails has none."""
        with suppress(Gone, Refused):
            found = await self.resources() if self.has_resources else []
            told = [str(each.get("uri") or each["uriTemplate"].partition("{")[0]) for each in found]
            self.uris = [uri for uri in dict.fromkeys(told) if uri and not re.search(r"\s", uri)]

    def drop(self, tool: str, reason: str) -> None:
        """A tool was left out of the list."""
        self.dropped[tool] = reason

    def changed(self, what: str) -> None:
        """The server says that a list has changed; it is read before the next request."""
        self._stale.add(what)

    # what it is asked

    async def call(self, tool: str, args: dict[str, Any], ctx: ToolEnvironment) -> CallToolResult:
        """Call a tool by its raw name. Like all that follows it raises `Gone` and `Refused`."""
        link = await self._connected()
        is_own = ctx.session_id == self._ctx.session.id
        pulse = Pulse(self.limits.call, ctx.call.id if is_own else "")
        calling = link.call(tool, args, pulse, getattr(ctx, "trace_context", {}))
        return await self._answer(calling, pulse, ctx)

    async def read(self, uri: str) -> ReadResourceResult:
        """Read a resource."""
        link = await self._connected()
        return await self._answer(link.read(uri), Pulse(self.limits.call))

    async def prompt(self, name: str, args: dict[str, str]) -> GetPromptResult:
        """Have a prompt filled in."""
        link = await self._connected()
        return await self._answer(link.prompt(name, args), Pulse(self.limits.call))

    async def resources(self) -> list[dict[str, Any]]:
        """What can be read, templates included."""
        link = await self._connected()
        found = [
            *await self._answer(link.resources(), Pulse(self.limits.call)),
            *await self._answer(link.templates(), Pulse(self.limits.call)),
        ]
        keys = {"uri", "uri_template", "name", "description", "mime_type"}
        return [
            each.model_dump(mode="json", by_alias=True, exclude_none=True, include=keys)
            for each in found
        ]

    async def _connected(self) -> ServerConnection:
        """The connection, or the one that is about to be made."""
        self.reconnect()
        await self._settled.wait()
        if self._link is None:
            raise Gone(f"the MCP server {self.name!r} is not connected: {self.error}")
        return self._link

    async def _answer(
        self, asking: Coroutine[Any, Any, T], pulse: Pulse, ctx: ToolEnvironment | None = None
    ) -> T:
        try:
            return await self._calls.answer(asking, pulse, ctx)
        except TimeoutError:
            text = f"gave no sign of life for {pulse.limit:g} s; the call was cancelled"
            raise Gone(f"the MCP server {self.name!r} {text}") from None
        except Gone as error:
            raise Gone(await self._obituary(str(error))) from None
        except PagesWanted as error:
            raise Refused(await self._led(error.pages, pulse.call_id)) from None
        except Refused as error:
            raise Refused(f"the MCP server {self.name!r} refused: {error}") from None

    async def _led(self, pages: Sequence[Mapping[str, Any]], call_id: str) -> str:
        """Have the user visit pages before anything is done; what is told of that."""
        for page in pages:
            action, _ = await elicit(self._ctx, self.name, page, call_id)
            if action != "accept":
                return f"the MCP server {self.name!r} wants a page visited first: the user did not"
        done = "the user was shown which: call again once they are done there"
        return f"the MCP server {self.name!r} wants a page visited first; {done}"

    async def _obituary(self, reason: str) -> str:
        """Why a call under way has failed; what the server left behind is known a moment later."""
        waiting = asyncio.ensure_future(self._explained.wait())
        await asyncio.wait({waiting}, timeout=EXPLAINED)
        waiting.cancel()
        why = self.error if self._explained.is_set() else reason
        effect = "whether the call had an effect is unknown, and it was not repeated"
        return f"the MCP server {self.name!r} went away during the call ({why}); {effect}"

    # what it asks

    @property
    def way(self) -> ConnectionMode | None:
        """How it was reached the last time, in this session or in another one."""
        return self._known.get(self.description.address)

    def remember(self, way: ConnectionMode | None) -> None:
        """It was reached in this way; None where that holds no longer."""
        if way is None:
            self._known.pop(self.description.address, None)
        else:
            self._known[self.description.address] = way

    @property
    def launcher(self) -> Launcher | None:
        """Who confines a process."""
        return (PROGRAMS.get(self._ctx) or {}).get("servers")

    @property
    def cwd(self) -> str:
        """Where its process runs."""
        return self._ctx.cwd

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that it is told of."""
        return self._ctx.roots

    async def elicit(self, params: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
        """Ask the user; given up with the last call that could have led to the question."""
        asking = elicit(self._ctx, self.name, params, self._calls.asking)
        question = asyncio.ensure_future(asking)
        await self._calls.wait(question)
        return ("cancel", None) if question.cancelled() else question.result()

    async def completed(self, elicitation_id: str) -> None:
        """The user is done with a page that it has wanted them to visit."""
        text = f"{self.name}: what was to be done in the browser is done"
        await self._ctx.agent.notify(self._ctx.session, "elicitation_complete", text)
        await self._ctx.ui.complete(page_of(self._ctx, self.name, elicitation_id))

    async def sample(self, wish: dict[str, Any]) -> dict[str, Any]:
        """Ask the model, if the user wants that; given up like a question. Raises `Refused`."""
        from crow.extensions.mcp.sampling import sample

        asking = asyncio.ensure_future(sample(self._ctx, self.name, wish))
        await self._calls.wait(asking)
        if asking.cancelled():
            raise Refused("the call that led to the request has ended")
        return asking.result()

    def log(self, level: str, text: str) -> None:
        """Keep a line that it logs."""
        line = f"{level}: {plain(text)[:LONGEST_LINE]}"
        self.logged.append(line)
        logger.debug("%s: %s", self.name, line)

    def learn(self, secret: str) -> None:
        """Know something that nobody may see: no tool says it any more."""
        self._ctx.agent.known_secrets |= {secret}

    def person(self) -> SignIn | None:
        """The user, where a call needs it or somebody wants to sign in."""
        may_ask = self._signs_in or self._link is not None
        if not may_ask or not is_attended(self._ctx.client):
            return None
        return BrowserSignIn(self._show, self._wait_for_user)

    def _wait_for_user(self, waits: bool) -> None:
        """Connecting takes as long as the user does."""
        if self._limit is not None:
            now = asyncio.get_running_loop().time()
            self._limit.reschedule(None if waits else now + self.limits.connect)

    async def _show(self, url: str, listener: Listener) -> None:
        """Show the page of a sign-in, if the user wants that."""
        question = asyncio.ensure_future(self._sign_in(url, listener))
        await self._calls.wait(question)
        question.result()

    async def _sign_in(self, url: str, listener: Listener) -> None:
        ui = self._ctx.ui
        text = f"The MCP server {self.name!r} wants you to sign in."
        page_id = page_of(self._ctx, self.name, uuid4().hex)
        page = Form(text, url=url, page_id=page_id, call_id=self._calls.asking)
        if (said := await ui.fill_in(page)) is not None:
            if said.action != "accept":
                raise SignInNeeded(needed(self.name))
            await asyncio.wait({listener.arrived})
            await ui.complete(page_id)
            return
        text = f"{text} The page is:\n{url}"
        if await ui.select(text, (OPEN, LATER), url=url) != OPEN:
            raise SignInNeeded(needed(self.name))
        client = self._ctx.client
        if implements(client, BrowserClient):
            if client.opens_pages:
                open_page(url)
            listener.take(await ui.ask(PASTE))


def _stop_if_cancelled() -> None:
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
