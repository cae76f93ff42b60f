"""One live connection to a server, from the handshake to its end; the library is used here.

Imported when the first server is connected, and not before: the library takes a while.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mcp.client.client import Client
from mcp.client.session import ClientRequestContext
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from mcp.types import (
    CONNECTION_CLOSED,
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitCompleteNotification,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    GetPromptResult,
    Implementation,
    ListRootsResult,
    LoggingMessageNotificationParams,
    Prompt,
    PromptListChangedNotification,
    ReadResourceResult,
    Resource,
    ResourceListChangedNotification,
    ResourceTemplate,
    Root,
    Tool,
    ToolListChangedNotification,
)

from crow import __version__
from crow.extensions.mcp.auth.auth import auth_of
from crow.extensions.mcp.channel import channel_streams
from crow.extensions.mcp.failure import (
    Failure,
    Gone,
    PagesWanted,
    Refused,
    first_of,
    plain,
    without_secrets,
)
from crow.extensions.mcp.limits import ENTRIES, PAGES
from crow.extensions.mcp.negotiation import ConnectionMode, fallback_mode, first_mode
from crow.extensions.mcp.response_filter import FilterObserver, filtered
from crow.extensions.mcp.stdio import process_streams
from crow.extensions.mcp.web import http_streams, sse_streams

if TYPE_CHECKING:
    from mcp.types import LoggingLevel

    from crow.extensions.mcp.description import Transport
    from crow.extensions.mcp.owner import Owner

T = TypeVar("T")
PATIENCE = 3.0
"""Seconds that a process may be silent before the older handshake is sent behind the newer one."""
RELISTEN, LONGEST_PAUSE = 1.0, 60.0
TOO_MUCH = "SSE stream failed"
"""One answer that is too long; the connection goes on."""
SESSION_GONE = "Session terminated"
LONGEST = 2000
LISTS: dict[type, str] = {
    ToolListChangedNotification: "tools",
    PromptListChangedNotification: "prompts",
    ResourceListChangedNotification: "resources",
    ToolsListChanged: "tools",
    PromptsListChanged: "prompts",
    ResourcesListChanged: "resources",
}
"""What the older sort and the newer say when a list has changed."""
REJECTED = -1
"""The error's code where a user wants no sampling, as the protocol has it."""


class Progress(Protocol):
    """Called with each sign of a call's progress."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """So far, of how much, and in words."""
        ...


class ServerConnection:
    """A connection that is up until ``gone``."""

    def __init__(self, client: Client, gone: asyncio.Event) -> None:
        self.client = client
        self.gone = gone

    @property
    def is_modern(self) -> bool:
        """True where it speaks the protocol without a handshake."""
        return self.client.session.discover_result is not None

    @property
    def about(self) -> dict[str, str]:
        """What the server says of itself, and which protocol is spoken."""
        told = self.client.server_info
        name = plain(f"{told.name} {told.version}") if told else ""
        return {"server": name, "protocol": self.client.protocol_version}

    @property
    def tells_of_changes(self) -> bool:
        """True where the server says when one of its lists has changed."""
        offered = self.client.server_capabilities
        listed = (offered.tools, offered.prompts, offered.resources)
        return any(each is not None and each.list_changed for each in listed)

    @property
    def has_tools(self) -> bool:
        """True where the server has tools to list."""
        return self.client.server_capabilities.tools is not None

    @property
    def has_prompts(self) -> bool:
        """True where the server has prompts to list."""
        return self.client.server_capabilities.prompts is not None

    @property
    def has_resources(self) -> bool:
        """True where the server has resources to list."""
        return self.client.server_capabilities.resources is not None

    async def log_from(self, level: LoggingLevel) -> None:
        """Ask a server of the older sort for its log; the newer hears of that in each request."""
        if not self.is_modern and self.client.server_capabilities.logging is not None:
            with warnings.catch_warnings(), suppress(Refused):
                warnings.simplefilter("ignore")  # of the library: the newest protocol has no such
                await self._asked(self.client.set_logging_level(level))  # pyright: ignore[reportDeprecated]

    async def tell_roots(self) -> None:
        """Say that other folders are worked in; the newer sort asks when it wants to know."""
        if not self.is_modern:
            with warnings.catch_warnings(), suppress(Refused, Gone):
                warnings.simplefilter("ignore")
                await self._asked(self.client.send_roots_list_changed())  # pyright: ignore[reportDeprecated]

    async def tools(self) -> list[Tool]:
        """All tools. Like all that follows it raises `Refused` and `Gone`."""
        return await self._asked(_all(self.client.list_tools, lambda page: page.tools))

    async def prompts(self) -> list[Prompt]:
        """All prompts."""
        return await self._asked(_all(self.client.list_prompts, lambda page: page.prompts))

    async def resources(self) -> list[Resource]:
        """All resources."""
        return await self._asked(_all(self.client.list_resources, lambda page: page.resources))

    async def templates(self) -> list[ResourceTemplate]:
        """All templates of resources; none where the server does not know of such."""
        fetch = self.client.list_resource_templates
        with suppress(Refused):
            return await self._asked(_all(fetch, lambda page: page.resource_templates))
        return []

    async def call(
        self, name: str, args: dict[str, Any], progress: Progress, meta: Mapping[str, str]
    ) -> CallToolResult:
        """Call a tool; ``meta`` goes along with the request."""
        told: Any = dict(meta) or None
        calling = self.client.call_tool(name, args, progress_callback=progress, meta=told)
        return await self._asked(calling)

    async def read(self, uri: str) -> ReadResourceResult:
        """Read a resource."""
        return await self._asked(self.client.read_resource(uri))

    async def prompt(self, name: str, args: dict[str, str]) -> GetPromptResult:
        """Have a prompt filled in."""
        return await self._asked(self.client.get_prompt(name, args))

    async def _asked(self, asking: Awaitable[T]) -> T:
        try:
            return await asking
        except MCPError as error:
            text = without_secrets(error.message)[:LONGEST]
            is_closed = error.code == CONNECTION_CLOSED and not text.startswith(TOO_MUCH)
            if is_closed or text == SESSION_GONE:
                self.gone.set()
                raise Gone(text) from None
            if pages := _pages_of(error):
                raise PagesWanted(text, pages) from None
            raise Refused(f"{text} (error {error.code})") from None
        except (ValueError, RuntimeError) as error:
            text = without_secrets(str(error))[:LONGEST]
            raise Refused(f"the server's answer is malformed: {text}") from None


def _pages_of(error: MCPError) -> list[dict[str, Any]]:
    """The pages that a server wants visited first; none for any other error."""
    try:
        wanted = UrlElicitationRequiredError.from_error(error.error).elicitations
    except (ValueError, TypeError, AttributeError):  # of another code, or nonsense
        return []
    return [_asked_of(each) for each in wanted]


def _asked_of(params: ElicitRequestParams) -> dict[str, Any]:
    """A question as hooks and the user are put it."""
    asked: dict[str, Any] = {"message": params.message, "mode": params.mode}
    if isinstance(params, ElicitRequestFormParams):
        return {**asked, "requested_schema": params.requested_schema}
    return {**asked, "url": params.url, "elicitation_id": params.elicitation_id}


async def _all(
    fetch: Callable[..., Awaitable[Any]], entries_of: Callable[[Any], list[T]]
) -> list[T]:
    """The entries of all pages, up to a limit."""
    entries: list[T] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await fetch(cursor=cursor)
        entries += entries_of(page)
        cursor = page.next_cursor
        if not cursor or len(entries) >= ENTRIES:
            break
    return entries[:ENTRIES]


@asynccontextmanager
async def opened(owner: Owner, failure: Failure) -> AsyncGenerator[ServerConnection]:
    """Connect to a server, in the way that it is known for, else the newest first.

    Raises what the transport or the library raises, of several ways what the first one raised.
    """
    async with AsyncExitStack() as stack:
        link = await stack.enter_async_context(_first_that_works(owner, failure))
        if link.is_modern and link.tells_of_changes:
            listening = asyncio.create_task(_listen(link, owner))
            stack.callback(listening.cancel)
        yield link


@asynccontextmanager
async def _first_that_works(owner: Owner, failure: Failure) -> AsyncGenerator[ServerConnection]:
    way: ConnectionMode | None = owner.way or first_mode(owner.description.transport)
    owner.remember(None)
    tried: list[ConnectionMode] = []
    causes: list[tuple[BaseException, Failure]] = []
    async with AsyncExitStack() as stack:
        while way is not None and way not in tried:
            tried.append(way)
            failure.become(Failure())
            try:
                link = await stack.enter_async_context(_linked(owner, failure, way))
            except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - raised again below
                causes.append((error, copy(failure)))
                way = fallback_mode(way, first_of(error), failure.http)
                continue
            owner.remember(way if link.is_modern else ConnectionMode(way.transport, "legacy"))
            failure.refuse(0, "")
            yield link
            return
    failure.become(causes[0][1])
    raise causes[0][0]


@asynccontextmanager
async def _linked(
    owner: Owner, failure: Failure, way: ConnectionMode
) -> AsyncGenerator[ServerConnection]:
    gone = asyncio.Event()
    client = Client(
        _server_of(owner, failure, way, gone),
        mode=way.mode,
        cache=None,
        client_info=Implementation(name="crow", version=__version__),
        message_handler=_Messages(owner),
        elicitation_callback=_Elicitation(owner),
        list_roots_callback=_Roots(owner),
        sampling_callback=_Sampling(owner),
        logging_callback=_Logging(owner),
        log_level=owner.limits.log_level,
    )
    async with client:
        link = ServerConnection(client, gone)
        await link.log_from(owner.limits.log_level)
        yield link


def _server_of(owner: Owner, failure: Failure, way: ConnectionMode, gone: asyncio.Event) -> Any:
    """The messages of a server, or the very server where it is in this process."""
    if way.transport == "process":
        return owner.description.server
    probes = way.transport == "stdio" and way.mode == "auto"
    return filtered(
        streams_of(owner, failure, way.transport),
        FilterObserver(owner.drop, failure.stray, gone.set),
        min(PATIENCE, owner.limits.connect / 3) if probes else None,
    )


def streams_of(
    owner: Owner, failure: Failure, transport: Transport
) -> AbstractAsyncContextManager[Any]:
    """The messages of a server on a transport."""
    described, limits = owner.description, owner.limits
    match transport:
        case "stdio":
            return process_streams(
                described, owner.cwd, failure, limits.close, owner.reaper, owner.launcher
            )
        case "http":
            return http_streams(described, failure, limits.connect, auth_of(owner, failure))
        case "sse":
            return sse_streams(described, failure, limits.connect, auth_of(owner, failure))
        case "client" | "process":
            assert described.channel is not None
            return channel_streams(described.channel)


async def _listen(link: ServerConnection, owner: Owner) -> None:
    """Servers of the newer sort tell of changes only on request, for as long as that lasts."""
    pause = RELISTEN
    while not link.gone.is_set():
        with suppress(MCPError, RuntimeError, OSError):
            async with link.client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as news:
                if pause > RELISTEN:  # what changed meanwhile was not told
                    for what in LISTS.values():
                        owner.changed(what)
                async for event in news:
                    pause = RELISTEN
                    if type(event) in LISTS:
                        owner.changed(LISTS[type(event)])
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


class _Messages:
    """Notes what has changed, and passes on what is done; lists are read later, between turns."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    async def __call__(self, message: object) -> None:
        if type(message) in LISTS:
            self._owner.changed(LISTS[type(message)])
        elif isinstance(message, ElicitCompleteNotification):
            await self._owner.completed(message.params.elicitation_id)


class _Elicitation:
    """Puts a server's question to the user."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    async def __call__(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        action, content = await self._owner.elicit(_asked_of(params))
        return ElicitResult.model_validate({"action": action, "content": content})


class _Sampling:
    """Puts a server's request to the model, if the user wants that."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    async def __call__(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        wish = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        try:
            return CreateMessageResult.model_validate(await self._owner.sample(wish))
        except Refused as error:
            return ErrorData(code=REJECTED, message=str(error))


class _Logging:
    """Keeps what a server logs."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    async def __call__(self, params: LoggingMessageNotificationParams) -> None:
        said = params.data if isinstance(params.data, str) else json.dumps(params.data)
        who = f"{params.logger}: " if params.logger else ""
        self._owner.log(params.level, f"{who}{said}")


class _Roots:
    """Tells a server which folders are worked in."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    async def __call__(self, context: ClientRequestContext) -> ListRootsResult:
        uris = [Path(root).as_uri() for root in self._owner.roots]
        return ListRootsResult(roots=[Root.model_validate({"uri": uri}) for uri in uris])
