"""A conversation as a file for people or programs, without the secrets that Crow knows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.core.messages import is_prompt, text_of
from crow.core.secrets import scrubbed
from crow.core.support.validation import implements
from crow.ports.stores import SegmentStore
from crow.text import one_line

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.messages import Message
    from crow.core.session import Session

LONGEST = 40
"""Letters of a title in the name of a file."""
SHOWN = 2000
"""Letters of what a tool said that Markdown has; JSON has all."""


def default_name(session: Session) -> str:
    """What a file is called where nobody names it."""
    words = re.sub(r"\W+", "-", session.title.casefold()).strip("-")[:LONGEST].rstrip("-")
    return "-".join(filter(None, ("crow", words, session.id[:8]))) + ".md"


async def said_in(agent: Agent, session: Session) -> list[Message]:
    """All messages of a session, those of before a compaction as well."""
    if not implements(agent.store, SegmentStore):
        return list(session.messages)
    old = await agent.store.segments(session.id)
    return [message for segment in old[:-1] for message in segment] + list(session.messages)


async def exported(agent: Agent, session: Session, *, as_json: bool) -> str:
    """The text of a file with the conversation."""
    messages: list[Message] = scrubbed(await said_in(agent, session), agent.secrets)
    title = scrubbed(session.title, agent.secrets)
    if as_json:
        whole = {"id": session.id, "cwd": session.cwd, "title": title, "messages": messages}
        return f"{json.dumps(whole, indent=2, ensure_ascii=False)}\n"
    head = f"# {one_line(title) or 'Conversation'}\n\nIn `{session.cwd}`, session {session.id}."
    return "\n\n".join([head, *markdown(messages)]) + "\n"


def markdown(messages: Sequence[Message]) -> Iterator[str]:
    """The parts of a conversation as Markdown; what was told to the model beside it is left out."""
    for message in messages:
        text = text_of(message.get("content")).strip()
        if is_prompt(message):
            yield f"## You\n\n{text}"
        elif message["role"] == "assistant":
            if text:
                yield f"## Crow\n\n{text}"
            yield from map(_call, message.get("tool_calls", ()))
        elif message["role"] == "tool" and text:
            yield fenced(text if len(text) <= SHOWN else f"{text[:SHOWN]}\n… {len(text):,} letters")


def _call(part: Any) -> str:
    function = part["function"]
    return f"**{function['name']}**\n\n{fenced(function['arguments'], 'json')}"


def fenced(text: str, language: str = "") -> str:
    """A text as a block of code, whatever fences it has in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def write(path: Path, text: str, *, overwrites: bool) -> None:
    """Write a file that only its owner can read. Raises ``FileExistsError`` unless it may be."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if overwrites else os.O_EXCL)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(text.encode(errors="replace"))
