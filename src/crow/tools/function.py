"""A typed Python function as a tool: its signature is the schema, its docstring the description."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import typing
from collections.abc import Awaitable, Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from crow.annotations.docstring import parameter_notes, purpose
from crow.annotations.schema import Reader, hoist, shape
from crow.core.errors import nearest
from crow.core.frozen import frozen
from crow.core.ports import ToolEnvironment
from crow.core.tools import Location, ToolKind, ToolResult
from crow.tools.checker import Checker
from crow.tools.errors import ToolError

P = ParamSpec("P")
R = TypeVar("R")

Args = dict[str, Any]
Title = str | Callable[[Args], str]
Locate = Callable[[Args, str], tuple[Location, ...]]
Prepare = Callable[[Args, str], Args]
Check = Callable[[Args], str | None]
Preview = Callable[..., Awaitable[ToolResult | None]]

KINDS: tuple[str, ...] = typing.get_args(ToolKind)
_CONTEXTS = ("ToolEnvironment", "ToolContext")


@frozen
class _Parameter:
    name: str
    key: str
    schema: dict[str, Any]
    read: Reader | None
    required: bool


class FunctionTool(Generic[P, R]):
    """A function that a model can call; calling it in Python still calls the function.

    Arguments that the model gives as null count as absent where they are optional.
    """

    __name__: str

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        kind: ToolKind = "other",
        title: Title | None = None,
        locations: Locate | None = None,
        prepare: Prepare | None = None,
        preview: Preview | None = None,
        check: Check | None = None,
        scope: dict[str, Any] | None = None,
    ) -> None:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"tool {function.__name__}: it yields; return the whole answer")
        if kind not in KINDS:
            near = nearest(str(kind), KINDS)
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(KINDS)}"
            called = name or getattr(function, "__name__", repr(function))
            raise TypeError(f"tool {called}: there is no kind {kind!r}; {hint}")
        functools.update_wrapper(cast("Any", self), function)
        self.function = function
        self._call: Callable[..., Any] = function
        self.name: str = name or getattr(function, "__name__", type(function).__name__)
        self.description: str = description or purpose(function.__doc__) or self.name
        self.kind: ToolKind = kind
        self._parameters, self._context = _signature(function, scope or {})
        self.parameters = _object_schema(self._parameters)
        self._title, self._locations = title, locations
        self._prepare, self._preview, self._check = prepare, preview, check
        self._problem = Checker(self.parameters)
        self._optional = {each.key for each in self._parameters if not each.required}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    def title(self, args: Args) -> str:
        """What a person reads; the tool's name where the arguments do not make a title."""
        if self._title is None:
            return self.name
        try:
            return (
                self._title.format_map(args) if isinstance(self._title, str) else self._title(args)
            )
        except (LookupError, TypeError, ValueError, AttributeError):
            return self.name

    def locations(self, args: Args, cwd: str) -> tuple[Location, ...]:
        """The places that the call touches."""
        if self._locations is None:
            return ()
        try:
            return self._locations(args, cwd)
        except (LookupError, TypeError, ValueError):
            return ()

    def prepare(self, args: Args, cwd: str) -> Args:
        """The arguments as hooks shall see them."""
        return args if self._prepare is None else self._prepare(args, cwd)

    def check(self, args: Args) -> str | None:
        """What is wrong with arguments, in one line that names them; None if nothing is."""
        given = self._given(args)
        return self._problem(given) or (self._check(given) if self._check else None)

    async def preview(self, args: Args, ctx: ToolEnvironment) -> ToolResult | None:
        """What the call would do, or its failure where that is certain; None where nobody knows."""
        if self._preview is None:
            return None
        try:
            return await self._preview(**self._bind(args, ctx))
        except ToolError as error:
            return ToolResult.failure(str(error))

    async def run(self, args: Args, ctx: ToolEnvironment) -> ToolResult | str:
        """Call the function with arguments that ``check`` found good; a sync one in a thread."""
        try:
            given = self._bind(args, ctx)
            if inspect.iscoroutinefunction(self._call):
                value = await self._call(**given)
            else:
                value = await asyncio.to_thread(self._call, **given)
                if inspect.isawaitable(value):
                    value = await value
        except ToolError as error:
            return ToolResult.failure(str(error))
        return _result(value)

    def _given(self, args: Args) -> Args:
        if None not in args.values():
            return args
        return {k: v for k, v in args.items() if v is not None or k not in self._optional}

    def _bind(self, args: Args, ctx: ToolEnvironment) -> Args:
        given = self._given(args)
        bound: Args = {}
        for each in self._parameters:
            if each.key in given:
                value = given[each.key]
                bound[each.name] = _read(each, value) if each.read else value
        if self._context:
            bound[self._context] = ctx
        return bound


def _read(parameter: _Parameter, value: Any) -> Any:
    assert parameter.read is not None
    try:
        return parameter.read(value)
    except (ValueError, TypeError) as error:
        raise ToolError(f"{parameter.key}: {error}") from error


def _result(value: Any) -> ToolResult | str:
    if value is None:
        return "(no output)"
    if hasattr(value, "model_dump"):
        return ToolResult.of(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, ToolResult | type):
        return ToolResult.of(dataclasses.asdict(value))
    return ToolResult.of(value)


def _signature(
    function: Callable[..., Any], scope: dict[str, Any]
) -> tuple[list[_Parameter], str | None]:
    """The parameters that the model fills, and the name of the one that receives the context."""
    hints = _hints(function, scope)
    notes = parameter_notes(function.__doc__)
    parameters: list[_Parameter] = []
    context: str | None = None
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "ctx" or _is_context(hints.get(name)):
            context = name
        else:
            parameters.append(_parameter(function, parameter, hints, notes))
    return parameters, context


def _is_context(hint: Any) -> bool:
    return getattr(hint, "__name__", "") in _CONTEXTS and isinstance(hint, type)


def _parameter(
    function: Callable[..., Any],
    parameter: inspect.Parameter,
    hints: dict[str, Any],
    notes: dict[str, str],
) -> _Parameter:
    where = f"tool {getattr(function, '__name__', function)!s}: parameter {parameter.name!r}"
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise TypeError(f"{where} cannot be given by name; write an ordinary parameter")
    if parameter.name not in hints:
        raise TypeError(f"{where} has no type; annotate it, for example {parameter.name}: str")
    try:
        found = shape(hints[parameter.name])
    except TypeError as error:
        raise TypeError(f"{where}: {error}") from error
    schema = dict(found.schema)
    if parameter.name in notes:
        schema.setdefault("description", notes[parameter.name])
    required = parameter.default is parameter.empty
    if not required and parameter.default and isinstance(parameter.default, str | int | float):
        schema["default"] = parameter.default
    read = found.read or (int if schema.get("type") == "integer" else None)  # 2.0 is one in JSON
    return _Parameter(parameter.name, found.name or parameter.name, schema, read, required)


def _hints(function: Callable[..., Any], scope: dict[str, Any]) -> dict[str, Any]:
    """Resolved annotations; a context may be imported for type checkers only."""
    scope = dict(scope)
    while True:
        try:
            return typing.get_type_hints(function, localns=scope, include_extras=True)
        except NameError as error:
            if not error.name or error.name in scope:
                raise
            if not _only_contexts_use(error.name, function):
                raise TypeError(
                    f"tool {function.__name__}: the annotation {error.name} is not known where the "
                    "function is defined; import it outside of TYPE_CHECKING"
                ) from error
            scope[error.name] = type(error.name, (), {})


def _only_contexts_use(missing: str, function: Callable[..., Any]) -> bool:
    """True where a name that cannot be resolved stands at nothing that the model fills."""
    if missing in _CONTEXTS:
        return True
    users = [name for name, note in function.__annotations__.items() if missing in str(note)]
    return set(users) <= {"ctx", "return"}


def _object_schema(parameters: list[_Parameter]) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {each.key: each.schema for each in parameters},
        "additionalProperties": False,
    }
    required = [each.key for each in parameters if each.required]
    if required:
        schema["required"] = required
    return hoist(schema)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    kind: ToolKind = "other",
    title: Title | None = None,
    locations: Locate | None = None,
    prepare: Prepare | None = None,
    preview: Preview | None = None,
    check: Check | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a typed function, sync or async.

    The signature becomes the schema (``Annotated[str, "what it means"]`` and the docstring's
    ``Args:`` section describe parameters), the docstring's first paragraph the description. A
    parameter named ``ctx``, or annotated ``ToolEnvironment`` or ``ToolContext``, gets the call's
    context. ``title`` is a format string over the arguments or a function of them. ``preview``,
    called like the function before the user is asked, gives the diffs of what it is about to do, or
    raises what it would raise; it changes nothing. ``check`` says in a line what is wrong with
    arguments that fit the schema, before anybody judges them, or None. Raise `ToolError` to answer
    with an error; return text, a `ToolResult`, or anything JSON.

    Raises ``TypeError`` at once where a parameter cannot be written as JSON Schema.
    """
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    scope = dict(caller.f_locals) if caller else {}
    if function is not None:
        return FunctionTool(function, scope=scope)
    return functools.partial(FunctionTool, scope=scope, **options)
