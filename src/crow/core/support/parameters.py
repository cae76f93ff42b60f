"""The parameters of what can be called, read from its code where that says them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD
KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL
VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD
OPEN_ENDED = {CO_VARARGS: VAR_POSITIONAL, CO_VARKEYWORDS: VAR_KEYWORD}
VARIADIC = frozenset(OPEN_ENDED.values())
SAYS_MORE = frozenset({"__wrapped__", "__signature__", "_partialmethod"})
"""Attributes of a function that is called in another way than its code says."""


class Parameter(NamedTuple):
    """One parameter; ``kind`` is that of `inspect`, where none is positional only."""

    name: str
    kind: object
    required: bool = False


def parameters(called: Any) -> list[Parameter]:  # noqa: C901 - in one place, for a start asks a hundred times
    """What `inspect.signature` says of a function, method or class, in a tenth of the time.

    ``*args`` and ``**kwargs`` are the last ones. Raises what that raises where nothing is known.
    """
    function: Any = called
    bound = 0
    if called.__class__ is MethodType:
        function, bound = called.__func__, 1
    elif (
        called.__class__ is type
        and called.__new__ is object.__new__
        and not hasattr(called, "__signature__")
    ):  # its `__init__` alone makes it
        if called.__init__ is object.__init__:
            return []
        function, bound = called.__init__, 1
    if function.__class__ is not FunctionType or not SAYS_MORE.isdisjoint(function.__dict__):
        return _of_signature(called)
    code: CodeType = function.__code__
    names, count = code.co_varnames, code.co_argcount
    if count < bound:
        return _of_signature(called)
    required, last = count - len(function.__defaults__ or ()), count + code.co_kwonlyargcount
    given: Mapping[str, Any] = function.__kwdefaults__ or {}
    found: list[Parameter] = []
    for at, name in enumerate(names[:last]):
        if at >= count:
            found.append(Parameter(name, KEYWORD_ONLY, name not in given))
        elif at >= bound:
            found.append(Parameter(name, NAMED, at < required))
    for flag, kind in OPEN_ENDED.items():
        if code.co_flags & flag:
            found.append(Parameter(names[last], kind))
            last += 1
    return found


def _of_signature(called: Any) -> list[Parameter]:
    said = inspect.signature(called).parameters.values()
    empty = inspect.Parameter.empty
    return [
        Parameter(each.name, each.kind, each.default is empty and each.kind not in VARIADIC)
        for each in said
    ]
