"""A request to the Messages protocol, as its rules look at it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

Block = dict[str, Any]
THOUGHTS = ("thinking", "redacted_thinking")
ROLES = ("user", "assistant", "system")
OLD = (0, 0)
AT_VERTEX = re.compile(r"/publishers/anthropic/models/([^/:]+):streamRawPredict$")
VERSION = "anthropic-version"
NAME = re.compile(r"claude-([a-z]+)-(\d)(?:-(\d))?(?:-|@|$)")
SIGNATURE = "strict"


class MessagesRequest:
    """A request's body and headers. Consecutive messages of one role count as one."""

    def __init__(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        self.body = body
        self.headers = headers

    @classmethod
    def at(cls, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> MessagesRequest:
        """A request to a path; at Vertex AI that has the model, and the body the version."""
        found = AT_VERTEX.search(path)
        rest = {**body}
        if found is None or rest.pop("anthropic_version", "") != "vertex-2023-10-16":
            return cls(body, headers)
        return cls({"model": found[1], **rest}, {VERSION: "2023-06-01", **headers})

    def part(self, name: str) -> Mapping[str, Any]:
        """An object in the body; an empty one where there is none."""
        return self.body.get(name) or {}

    @property
    def tools(self) -> list[Block]:
        """The tools that are offered."""
        return self.body.get("tools") or []

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.body.get("model"))

    @cached_property
    def family(self) -> str:
        """Such as ``opus``; empty for a model that is no Claude."""
        found = NAME.search(self.model)
        return found.group(1) if found else ""

    @cached_property
    def version(self) -> tuple[int, int]:
        """Such as (4, 5)."""
        found = NAME.search(self.model)
        return (int(found.group(2)), int(found.group(3) or 0)) if found else OLD

    @property
    def binds(self) -> bool:
        """Whether the model binds its thoughts to all that stood before them."""
        return self.version >= (5, 1)

    @property
    def always_thinks(self) -> bool:
        """Whether thinking cannot be switched off."""
        if self.family in ("fable", "mythos"):
            return self.version >= (5, 0)
        return self.family in ("opus", "sonnet") and self.version >= (5, 5)

    @property
    def betas(self) -> set[str]:
        """The betas that the request names."""
        named = self.headers.get("anthropic-beta", "").split(",")
        return {each.strip() for each in named if each.strip()}

    @property
    def thinking(self) -> Mapping[str, Any]:
        """How the request wants the model to think."""
        return self.part("thinking")

    @property
    def is_thinking(self) -> bool:
        """Whether the model is to think."""
        return self.always_thinks or self.thinking.get("type") in ("enabled", "adaptive")

    @property
    def drops(self) -> bool:
        """Whether thoughts that fail their check are to be dropped and not refused."""
        binding: Mapping[str, Any] = self.thinking.get("block_binding") or {}
        return binding.get("prefix_mismatch_behavior") == "drop_block"

    @cached_property
    def messages(self) -> list[tuple[str, list[Block]]]:
        """Role and blocks of every message."""
        return [(each["role"], blocks_of(each["content"])) for each in self.body["messages"]]

    @cached_property
    def turns(self) -> list[tuple[str, list[Block]]]:
        """The same, with neighbours of one role as one."""
        turns: list[tuple[str, list[Block]]] = []
        for role, blocks in self.messages:
            if turns and turns[-1][0] == role:
                turns[-1][1].extend(blocks)
            else:
                turns.append((role, list(blocks)))
        return turns

    def blocks(self, *types: str) -> Iterator[tuple[int, int, Block]]:
        """Number of the message, number of the block, and the block, for those of some types."""
        for number, (_, blocks) in enumerate(self.messages):
            for at, block in enumerate(blocks):
                if block["type"] in types:
                    yield number, at, block

    @property
    def marks(self) -> int:
        """How many blocks are marked for the cache."""
        marked = sum("cache_control" in block for _, block in self.parts())
        return marked + ("cache_control" in self.body)

    def parts(self) -> Iterator[tuple[str, Block]]:
        """All that a prefix consists of, in order, each with its place.

        That is ``tools``, ``top`` for what the system says in front, or a message's role.
        """
        yield from (("tools", tool) for tool in self.tools)
        yield from (("top", block) for block in blocks_of(self.body.get("system") or []))
        yield from ((role, block) for role, blocks in self.messages for block in blocks)


def blocks_of(content: str | Iterable[Block]) -> list[Block]:
    """A content as blocks; a text is one."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def digest(value: object) -> str:
    """A short hash of JSON."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Prefix:
    """A hash of all that was added so far; marks for the cache do not count."""

    def __init__(self) -> None:
        self.value = ""

    def add(self, place: str, block: Mapping[str, Any]) -> None:
        """Add a block."""
        plain = {name: value for name, value in block.items() if name != "cache_control"}
        self.value = digest([self.value, place, plain])


def sign(model: str, prefix: str, thought: str) -> str:
    """The signature of what a model thought behind a prefix."""
    return ".".join([SIGNATURE, model, prefix, digest(thought)])


def signed(block: Block) -> tuple[str, str] | None:
    """Model and prefix that a thought was signed for; None where the signature is false."""
    text = block["thinking"] if block["type"] == "thinking" else ""
    given = str(block.get("signature" if block["type"] == "thinking" else "data"))
    word, _, rest = given.partition(".")
    model, _, rest = rest.rpartition(".")[0].rpartition(".")
    is_true = word == SIGNATURE and given.rpartition(".")[2] == digest(text)
    return (model, rest) if is_true else None
