"""The answer to ``initialize``: the agent's capabilities.

Made by hand: it must not wait for any library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crow._version import __version__
from crow.acp.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, Message, as_object, failure, success

if TYPE_CHECKING:
    import crow.acp.outgoing as v1
    import crow.acp.v2.outgoing as v2

PROTOCOL_VERSION = 1
DRAFT_VERSION = 2
PRESUMED: dict[str, Any] = {"protocolVersion": PROTOCOL_VERSION}
"""What a client has said that asks for something before it has greeted."""
OPENING = ("session/new", "session/load", "session/resume", "session/fork")
"""Requests that are of use only to a client that stays: they end with its input."""

AUTH_METHOD: Message = {
    "type": "agent",
    "id": "environment",
    "name": "API key",
    "description": "Set OPENAI_API_KEY (or another provider's) where the editor starts, or run "
    "`crow login` in a terminal.",
}
LOGIN_METHOD: Message = {
    "type": "terminal",
    "id": "login",
    "name": "Store an API key",
    "description": "Asks for a provider and its key in a terminal.",
    "args": ["--login"],
}
TERMINAL_AUTH = "terminal-auth"


class AgentCapabilities:
    """Capabilities of an agent that not every agent has.

    ``store``: sessions outlive the process. ``image``, ``audio``: what prompts may hold. ``mcp``:
    servers that the client names are used. ``archive``: sessions can be put away. ``prompted``: a
    client may add to the system message, or take its place. ``providers``: it may say where models
    are asked. ``login`` is a command that asks the
    user for a key and stores it; `logout` removes stored keys where there is one. ``latest`` is
    the newest version of the protocol that is spoken with who asks for it: 2 is a draft.
    ``ask_timeout`` is for how many seconds a question waits for the user, if the client does not
    say; 0: for ever.
    """

    __slots__ = (
        *("archive", "ask_timeout", "audio", "image", "latest", "login", "mcp"),
        *("prompted", "providers", "store"),
    )

    def __init__(
        self,
        *,
        store: bool = False,
        image: bool = True,
        audio: bool = False,
        mcp: bool = False,
        login: Sequence[str] = (),
        latest: int = PROTOCOL_VERSION,
        ask_timeout: float = 0.0,
        archive: bool = False,
        prompted: bool = False,
        providers: bool = False,
    ) -> None:
        self.archive = archive
        self.prompted = prompted
        self.providers = providers
        self.ask_timeout = ask_timeout
        self.store = store
        self.latest = latest
        self.login = tuple(login)
        self.image = image
        self.audio = audio
        self.mcp = mcp

    def capabilities(self) -> v1.AgentCapabilities:
        """The offer in the words of the protocol."""
        session: v1.SessionCapabilities = {
            "close": {},
            "fork": {},
            "additionalDirectories": {},
            "title": {},
        }
        self.add_drafts(session)
        if self.store:
            session.update({"list": {}, "resume": {}, "delete": {}, "status": {}})
        auth: v1.AgentAuthCapabilities = {"status": {}}
        if self.login:
            auth["logout"] = {}
        told: v1.AgentCapabilities = {
            "loadSession": self.store,
            "promptCapabilities": {
                "image": self.image,
                "audio": self.audio,
                "embeddedContext": True,
            },
            "mcpCapabilities": {"http": self.mcp, "sse": self.mcp, "acp": self.mcp},
            "sessionCapabilities": session,
            "auth": auth,
        }
        if self.providers:
            told["providers"] = {}
        return told

    def add_drafts(self, session: Any) -> None:
        """Say what can be done with sessions that both versions call the same."""
        if self.archive:
            session["archive"] = {}
        if self.prompted:
            session["systemPrompt"] = {"mode": {"override": {}}}

    def methods(self, client: Message) -> list[Any]:
        """The ways to authenticate; one in a terminal only for clients that can open one."""
        is_legacy = as_object(client.get("_meta")).get(TERMINAL_AUTH) is True
        terminal = as_object(client.get("auth")).get("terminal")
        is_able = terminal is True or isinstance(terminal, dict) or is_legacy
        if not self.login or not is_able:
            return [AUTH_METHOD]
        method = LOGIN_METHOD
        if is_legacy:
            command, *args = self.login
            legacy = {"command": command, "args": args, "label": LOGIN_METHOD["name"]}
            method = {**method, "_meta": {TERMINAL_AUTH: legacy}}
        return [AUTH_METHOD, method]


def version_of(asked: object, offer: AgentCapabilities) -> int:
    """The version to speak with a client that asks for one: the draft only on both sides' wish."""
    is_newer = type(asked) is int and asked >= DRAFT_VERSION
    return DRAFT_VERSION if is_newer and offer.latest >= DRAFT_VERSION else PROTOCOL_VERSION


def initialize(
    request: Message, offer: AgentCapabilities, before: Message | None = None
) -> Message:
    """The answer to an ``initialize`` request; ``before`` are the parameters of an earlier one.

    Whatever version the client asks for, it is told the newest that is spoken here and not newer.
    A connection speaks one version from its first greeting on.
    """
    params: Any = request.get("params")
    version = params.get("protocolVersion") if params else None
    if isinstance(version, bool) or not isinstance(version, int | str):
        details = "protocolVersion: missing"
        return failure(request["id"], INVALID_PARAMS, "Invalid params", details=details)
    spoken = version_of(version, offer)
    if before and version_of(before.get("protocolVersion"), offer) != spoken:
        details = "this connection speaks another version already"
        return failure(request["id"], INVALID_REQUEST, "Invalid request", details=details)
    if spoken == DRAFT_VERSION:
        return _initialize_in_draft(request, offer)
    client = as_object(request["params"].get("clientCapabilities"))
    result: v1.InitializeResponse = {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": offer.capabilities(),
        "agentInfo": {"name": "crow", "title": "Crow", "version": __version__},
        "authMethods": offer.methods(client),
        "_meta": {"steering": {"supported": True}},
    }
    return success(request["id"], result)


def _initialize_in_draft(request: Message, offer: AgentCapabilities) -> Message:
    """The answer to a client that speaks version 2; a newer one's parameters may be any."""
    params: Message = request["params"]
    info = as_object(params.get("info"))
    is_told = all(isinstance(info.get(name), str) for name in ("name", "version"))
    if params["protocolVersion"] == DRAFT_VERSION and not is_told:
        details = "info: its name and version are missing"
        return failure(request["id"], INVALID_PARAMS, "Invalid params", details=details)
    result: v2.InitializeResponse = {
        "protocolVersion": DRAFT_VERSION,
        "info": {"name": "crow", "title": "Crow", "version": __version__},
        "capabilities": _capabilities(offer),
        "authMethods": list(map(_method, offer.methods(as_object(params.get("capabilities"))))),
        "_meta": {"steering": {"supported": True}},
    }
    return success(request["id"], result)


def _capabilities(offer: AgentCapabilities) -> v2.AgentCapabilities:
    """What can be done beyond what every agent can."""
    told: v2.AgentCapabilities = {"session": _of_sessions(offer), "auth": {"status": {}}}
    return {**told, "providers": {}} if offer.providers else told


def _of_sessions(offer: AgentCapabilities) -> v2.SessionCapabilities:
    prompt: v2.PromptCapabilities = {"embeddedContext": {}}
    session: v2.SessionCapabilities = {
        "prompt": prompt,
        "additionalDirectories": {},
        "fork": {},
        "title": {},
    }
    if offer.image:
        prompt["image"] = {}
    if offer.audio:
        prompt["audio"] = {}
    if offer.mcp:
        session["mcp"] = {"stdio": {}, "http": {}, "acp": {}}
    if offer.store:
        session.update({"delete": {}, "status": {}})
    offer.add_drafts(session)
    return session


def _method(offered: Message) -> Any:
    """A way to authenticate; its id has another name here."""
    return {"methodId": offered["id"], **{k: v for k, v in offered.items() if k != "id"}}
