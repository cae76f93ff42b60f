"""The defaults of an agent, which whoever ships one gives it: the core itself has none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from crow.core.errors import ModelError
from crow.core.extensions import Found
from crow.core.ports.llm import LLM
from crow.core.ports.tool import Tool

if TYPE_CHECKING:
    from crow.core.host import Agent


class ChatClient(Protocol):
    """Somebody else's client, with ``.chat.completions.create``: ``openai.AsyncOpenAI``."""

    @property
    def chat(self) -> Any:
        """What has ``completions``."""
        ...


class Defaults:
    """The defaults of an agent: model, tools, extensions; nothing, in the core."""

    def llm(self, given: ChatClient | str | None, model: str | None) -> LLM:
        """The model of a client, of this name, or the one to use where none is named."""
        raise ModelError("the agent has no model: Agent(llm=...)", kind="unconfigured")

    def tools(self) -> Iterable[Tool]:
        """The tools that an agent is born with."""
        return ()

    def keys(self) -> Iterable[str]:
        """The environment variables that hold keys for models."""
        return ()

    def hint(self, lacking: Literal["store", "sections"]) -> str:
        """What to use for sessions to be stored, or for prompt sections to be read."""
        return "use an extension that does it"

    def discover(
        self,
        agent: Agent,
        options: Mapping[str, Mapping[str, Any]],
        disabled: frozenset[str],
        trusted: frozenset[str],
    ) -> Iterable[Found]:
        """Use the extensions of installed packages; what became of each."""
        return ()
