"""Ports: what an object may have is asked for by protocols, and by nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pytest

import crow
import crow.ports
from crow import LLM, Agent, Completion, Request, ToolEnvironment, build
from crow.core.support.validation import members_of
from crow.core.tools import ToolKind
from crow.ports import ModeProvider, first_implementing, implementing, implements
from crow.testing import BuildAgent, ScriptedModel, call

SRC = Path(crow.__file__).parent


class Named(Protocol):
    @property
    def name(self) -> str: ...


class Called(Named, Protocol):
    def call(self) -> None: ...


class Both:
    name = "both"

    def call(self) -> None:
        """Do nothing."""


class Standing:
    """Stands for another object."""

    def __init__(self, other: object) -> None:
        self.other = other

    def __getattr__(self, name: str) -> Any:
        return getattr(self.other, name)


class Delegating:
    """Has what another object has, or has not."""

    def __init__(self, other: Any) -> None:
        self.other = other

    @property
    def name(self) -> str:
        return self.other.name

    def call(self) -> None:
        """Do nothing."""


class Late:
    def __init__(self) -> None:
        self.name = "late"
        self.call = print


class Uncalled:
    name = "uncalled"
    call = None


def module() -> ModuleType:
    made = ModuleType("made")
    vars(made).update(name="made", call=print)
    return made


@pytest.mark.parametrize(
    "thing", [Both(), Both, Standing(Both()), Delegating(Both()), Late(), module()]
)
def test_an_object_implements_what_it_has_members_for(thing: object):
    assert implements(thing, Called)


@pytest.mark.parametrize(
    "thing", [None, 5, object(), Standing(object()), Delegating(object()), ModeProvider, Uncalled()]
)
def test_an_object_that_lacks_a_member_implements_nothing(thing: object):
    assert not implements(thing, Called)


def test_a_member_of_a_protocol_that_is_extended_is_asked_for_too():
    assert members_of(Called) == ("call", "name")
    assert not implements(type("Nameless", (), {"call": print})(), Called)


def test_those_that_implement_something_are_found_in_their_order():
    things = [object(), late := Late(), None, both := Both()]
    assert implementing(things, Named) == [late, both]
    assert first_implementing(things, Named) is late
    assert first_implementing([None], Named) is None


ASKED: list[Any] = [
    each
    for name in dir(crow.ports)
    if getattr(each := getattr(crow.ports, name), "_is_runtime_protocol", False)
]
"""The protocols that objects are asked for; others say what is given and taken."""
ASKS = re.compile(r"(?:get|has)attr\([^()]+(?:\([^()]*\))?, \"")
OTHERS = ("llm/client", "extensions/mcp/result")
"""What reads the objects of other libraries."""


@pytest.mark.parametrize("protocol", ASKED, ids=lambda each: each.__name__)
def test_isinstance_knows_the_protocols_too(protocol: Any):
    assert not isinstance(object(), protocol)


def test_nobody_asks_for_an_optional_member_by_its_name():
    asked = {name for each in ASKED for name in members_of(each) if name in vars(each)}
    found: list[str] = []
    for path in SRC.rglob("*.py"):
        inner, text = path.relative_to(SRC).as_posix(), path.read_text("utf-8")
        if inner.startswith(OTHERS) or not ASKS.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(ast.Name("getattr" | "hasattr"), [_, ast.Constant(name), *_]):
                    found += [f"{inner}:{node.lineno} {name}"] if name in asked else []
                case _:
                    pass
    assert found == []


class OwnKind:
    """A model with members of its own that are called like those that Crow reads."""

    model = "own"
    context_window = 1000
    base_url = Path("/somewhere")

    def __init__(self) -> None:
        self.info = {"vendor": "me"}

    async def stream(self, request: Request) -> AsyncGenerator[Completion]:
        yield Completion("Done.", usage={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2})


class Wrapper(OwnKind):
    """Gives what the model behind it has, which is nothing of that kind."""

    @property
    def info(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return object().info  # pyright: ignore[reportAttributeAccessIssue]

    def __init__(self) -> None:
        """Have none."""


@pytest.mark.parametrize("llm", [OwnKind(), Wrapper()])
async def test_a_model_whose_members_mean_something_else_answers(
    build_agent: BuildAgent, llm: LLM
) -> None:
    async with build(model=llm) as agent:
        assert (await agent.run("Go")).stop_reason == "end_turn"


@dataclass
class Unchecked:
    """A tool that says that it has no check, no title and no preview."""

    name: str = "look"
    description: str = "Looks."
    kind: ToolKind = "read"
    check: None = None
    title: None = None
    preview: None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """None at all."""
        return {"type": "object", "properties": {}}

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> str:
        """Look."""
        return "seen"


async def test_a_member_that_is_none_is_not_there() -> None:
    async with Agent(ScriptedModel(call("look"), "Done."), tools=[Unchecked()]) as agent:
        reply = await agent.run("Go")
    assert reply.text == "Done."
    assert reply.session.messages[2].get("content") == "seen"
