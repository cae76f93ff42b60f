"""Parameters, as they are read from code: what `inspect` says of the same."""

from __future__ import annotations

import abc
import functools
import inspect
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, Generic, NamedTuple, Self, TypeVar

import pytest

from crow.core.support.frozen import frozen
from crow.core.support.parameters import parameters

T = TypeVar("T")


def plain(a: int, b: int = 1, *rest: int, c: int, d: int = 2, **more: int) -> None: ...
def nothing() -> None: ...
def positional(a: int, /, b: int = 0) -> None: ...
def only(*, a: int, b: int = 0) -> None: ...
def everything(*args: Any, **kwargs: Any) -> None: ...


@functools.wraps(plain)
def wrapped(*args: Any, **kwargs: Any) -> None: ...


class Bare:
    pass


class Made:
    def __init__(self, a: int, *, b: int = 0) -> None: ...
    def method(self, a: int, b: int = 0) -> None: ...
    def of_all(*args: Any) -> None: ...
    @classmethod
    def of_class(cls, a: int) -> None: ...
    @staticmethod
    def of_none(a: int) -> None: ...
    def __call__(self, a: int) -> None: ...


class Below(Made):
    pass


class New:
    def __new__(cls, a: int) -> Self:
        raise NotImplementedError


class Typed(Generic[T]):
    def __init__(self, a: T) -> None: ...


class Abstract(abc.ABC):
    def __init__(self, a: int) -> None:
        self.a = a

    @abc.abstractmethod
    def work(self) -> None: ...


class Said:
    __signature__ = inspect.signature(plain)


class Pair(NamedTuple):
    a: int
    b: int = 0


@dataclass
class Fields:
    a: int
    b: list[int] = field(default_factory=list[int])


@frozen
class Cold:
    a: int
    b: list[int] = field(default_factory=list[int])


MADE = Made(1)


@pytest.mark.parametrize(
    "called",
    [
        *(plain, nothing, positional, only, everything, wrapped, lambda a, b=1: None),
        *(functools.partial(plain, 1), functools.partial(plain, a=1)),
        *(MADE.method, MADE.of_all, Made.of_class, Made.of_none, MADE),
        *(Bare, Made, Below, New, Typed, Abstract, Said, Pair, Fields, Cold),
    ],
)
def test_parameters_are_those_of_the_signature(called: Any) -> None:
    said = inspect.signature(called).parameters
    found = {each.name: each for each in parameters(called)}
    assert found.keys() == said.keys()
    for name, other in said.items():
        is_variadic = other.kind in (other.VAR_POSITIONAL, other.VAR_KEYWORD)
        assert found[name].required == (other.default is other.empty and not is_variadic)
        assert found[name].kind == other.kind or other.kind is other.POSITIONAL_ONLY


@pytest.mark.parametrize("called", [1, None, MethodType(nothing, 1)])
def test_what_has_no_signature_is_refused_as_by_inspect(called: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        parameters(called)
