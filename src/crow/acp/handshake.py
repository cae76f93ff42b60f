"""What an agent offers its clients, and the versions of the protocol that it speaks."""

from __future__ import annotations

from collections.abc import Sequence

from crow.acp.jsonrpc import Message, as_object

PROTOCOL_VERSION = 1
DRAFT_VERSION = 2

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
    """What an agent can do that not every agent can.

    ``store``: sessions outlive the process. ``image``, ``audio``: what prompts may hold. ``mcp``:
    servers that the client names are used. ``login`` is a command that asks the user for a key
    and stores it; `logout` removes stored keys where there is one. ``latest`` is the newest
    version of the protocol that is spoken with who asks for it: 2 is a draft. ``ask_timeout`` is
    for how many seconds a question waits for the user, if the client does not say; 0: for ever.
    """

    __slots__ = ("ask_timeout", "audio", "image", "latest", "login", "mcp", "store")

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
    ) -> None:
        self.ask_timeout = ask_timeout
        self.store = store
        self.latest = latest
        self.login = tuple(login)
        self.image = image
        self.audio = audio
        self.mcp = mcp

    def capabilities(self) -> Message:
        """The offer in the words of the protocol."""
        session: Message = {"close": {}, "fork": {}, "additionalDirectories": {}, "title": {}}
        if self.store:
            session |= {"list": {}, "resume": {}, "delete": {}, "status": {}}
        return {
            "loadSession": self.store,
            "promptCapabilities": {
                "image": self.image,
                "audio": self.audio,
                "embeddedContext": True,
            },
            "mcpCapabilities": {"http": self.mcp, "sse": self.mcp},
            "sessionCapabilities": session,
            "auth": {"status": {}, **({"logout": {}} if self.login else {})},
        }

    def methods(self, client: Message) -> list[Message]:
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
