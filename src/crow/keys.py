"""Keys of ``session.cache`` by which tools, extensions and clients tell each other something."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from crow.core.cache import CARRIER, ENDING, FIRST_PROMPT, SUBAGENTS, TRACE_CONTEXT, Key
from crow.core.ports.tool import Launcher

__all__ = [
    "CARRIER",
    "CLIENT_PROMPT",
    "CLIENT_SERVERS",
    "ENDING",
    "ENV_FILE",
    "FIRST_PROMPT",
    "GIVEN_MODE",
    "INITIAL_PROMPT",
    "INSTRUCTION_FILES",
    "JOBS",
    "MAY_READ",
    "OUTPUT_STYLE",
    "PROGRAMS",
    "PROMPT_CACHE",
    "ROLE",
    "SANDBOX",
    "STRUCTURED_OUTPUT",
    "SUBAGENTS",
    "SUBAGENT_CALLS",
    "SYSTEM_PROMPT",
    "TRACE_CONTEXT",
    "UNASKED",
    "WATCHED",
    "Job",
    "Key",
    "Launcher",
    "PromptCache",
    "Sandbox",
]


class Job(Protocol):
    """Something that a tool started and that goes on beside the conversation."""

    @property
    def title(self) -> str:
        """What it is, in a line."""
        ...

    @property
    def reported(self) -> bool:
        """True once the model was told of its end, by a tool's result."""
        ...

    async def wait(self) -> str:
        """Wait for its end; how it ended, in a few words."""
        ...


class PromptCache(Protocol):
    """Whether requests began as the ones before, which is what providers keep in their caches."""

    @property
    def lines(self) -> Sequence[str]:
        """What a person should know, the first line alone being enough; none before a request."""
        ...

    @property
    def described(self) -> Mapping[str, Any]:
        """The same as JSON; empty as long as every request did."""
        ...


class Sandbox(Protocol):
    """The sandbox of commands, for whoever judges them and whoever tells of it."""

    @property
    def name(self) -> str:
        """What holds them; empty where nothing does. May look for it, and block meanwhile."""
        ...

    @property
    def unasked(self) -> bool:
        """True where commands that stay inside need no question. May block."""
        ...

    @property
    def over_ask(self) -> bool:
        """True where not even a rule needs one that asks about every command."""
        ...

    @property
    def reads(self) -> bool:
        """True where a command may be tried in a ring that lets it write nothing. May block."""
        ...

    def has_refused(self, command: str) -> bool:
        """True for a command to which that ring has refused something."""
        ...

    @property
    def escapes(self) -> bool:
        """True where a call may ask to run outside, by ``dangerouslyDisableSandbox``."""
        ...

    @property
    def excluded(self) -> Sequence[str]:
        """Commands that run outside by themselves, as permission rules name them."""
        ...

    @property
    def line(self) -> str:
        """It in a line, as far as it is known by now."""
        ...


JOBS: Key[dict[str, Job]] = Key("jobs")
"""What tools left running in a session, by id."""
GIVEN_MODE: Key[str] = Key("given_mode")
"""The mode that today's settings give a session: the one that it has where nobody chose another."""
ENV_FILE: Key[str] = Key("env_file")
"""The path of a file that Bash sources before its commands."""
WATCHED: Key[AbstractSet[str]] = Key("watched")
"""The files, absolute, whose changes are to be told."""
MAY_READ: Key[dict[str, Callable[[str], bool]]] = Key("may_read")
"""Who keeps files from being read: functions by their owners' names, asked with an absolute path.

Tools that search ask all of them about each file before they open or name it.
"""
UNASKED: Key[dict[str, Callable[[str], bool]]] = Key("unasked")
"""Who says which files a model may read unasked: functions as those of `MAY_READ`.

What is in another file is nothing that a model may be told before the user was asked.
"""
PROGRAMS: Key[dict[str, Launcher]] = Key("programs")
"""Who confines programs that no call starts, by what they are: ``hooks``, ``servers``."""
SANDBOX: Key[Sandbox] = Key("sandbox")
"""What the commands of a session run in, where that is looked after."""
PROMPT_CACHE: Key[PromptCache] = Key("prompt_cache")
"""What became of the beginning of a session's requests, where somebody compares them."""
SYSTEM_PROMPT: Key[Mapping[str, str]] = Key("system_prompt")
"""What the system message of a session's requests was put together from: texts by name."""
INSTRUCTION_FILES: Key[Mapping[str, int]] = Key("instruction_files")
"""The files whose text stands in the system message, and how many characters each has there."""
STRUCTURED_OUTPUT: Key[dict[str, Any] | None] = Key("structured_output")
"""What the last run has answered in the form that was wanted; None where it has not."""
CLIENT_PROMPT: Key[tuple[str, str]] = Key("client_prompt")
"""A client's part of the system message: ``append`` or ``override``, and the text."""
ROLE: Key[tuple[str, str]] = Key("role")
"""What a session's agent is told to be: how, and the text.

``append`` puts it behind Crow's own words, ``override`` in their place; ``agent`` in the place of
a client's, too.
"""
INITIAL_PROMPT: Key[str] = Key("initial_prompt")
"""What a session's agent begins with, before what its user says first; gone once it is said."""
OUTPUT_STYLE: Key[str] = Key("output_style")
"""The name of the way in which a session's agent talks."""
CLIENT_SERVERS: Key[Any] = Key("client_servers")
"""The MCP servers that a session's client names now: descriptions.

One that the client has itself is a ``name`` and a ``channel``, whose ``await ask(method, params,
hear)`` sends it a request: the ``result`` or the ``error``, and ``hear`` is called with the method
and the parameters of what the server says meanwhile. Where it is not reached that raises `OSError`.
"""
SUBAGENT_CALLS: Key[dict[str, str]] = Key("subagents.calls")
"""The ids of a session's calls that sub-agents work for, by theirs."""
