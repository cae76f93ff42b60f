"""Ports: what an object may have is asked for by protocols, and by nothing else."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pytest

import crow
import crow.ports
from crow.core.support.validation import members_of
from crow.ports import ModeProvider, first_implementing, implementing, implements

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
OTHERS = ("llm/client", "extensions/mcp/result")
"""What reads the objects of other libraries."""


@pytest.mark.parametrize("protocol", ASKED, ids=lambda each: each.__name__)
def test_isinstance_knows_the_protocols_too(protocol: Any):
    assert not isinstance(object(), protocol)


def test_nobody_asks_for_an_optional_member_by_its_name():
    asked = {name for each in ASKED for name in members_of(each) if name in vars(each)}
    found: list[str] = []
    for path in SRC.rglob("*.py"):
        inner = path.relative_to(SRC).as_posix()
        if inner.startswith(OTHERS):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(ast.Name("getattr" | "hasattr"), [_, ast.Constant(name), *_]):
                    found += [f"{inner}:{node.lineno} {name}"] if name in asked else []
                case _:
                    pass
    assert found == []
