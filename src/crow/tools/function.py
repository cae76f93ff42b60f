"""A typed Python function as a tool: its signature is the schema, its docstring the description."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import typing
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload

from crow.core.errors import nearest
from crow.core.ports.tool import ToolEnvironment
from crow.core.tools import Location, ToolKind, ToolResult
from crow.tools.errors import ToolError

if TYPE_CHECKING:
    from crow.tools.signature import Filled, Reader

P = ParamSpec("P")
R = TypeVar("R")

Args = dict[str, Any]
Title = str | Callable[[Args], str]
Locate = Callable[[Args, str], tuple[Location, ...]]
Prepare = Callable[[Args, str], Args]
Check = Callable[[Args], str | None]
Preview = Callable[..., Awaitable[ToolResult | None]]

KINDS: tuple[str, ...] = typing.get_args(ToolKind)


class FunctionTool(Generic[P, R]):
    """A function that a model can call; calling it in Python still calls the function.

    Arguments that the model gives as null count as absent where they are optional. Where the
    ``schema`` of the arguments is given, they are the function's behind ``ctx``, in this order, and
    the first line of its docstring is the description.
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
        schema: dict[str, Any] | None = None,
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
        self.description: str
        self.kind: ToolKind = kind
        self._filled: list[Filled]
        self._context: str | None
        if schema is None:
            from crow.annotations.docstring import purpose
            from crow.tools.signature import signature_of

            self.description = description or purpose(function.__doc__) or self.name
            schema, self._filled, self._context = signature_of(function, scope or {})
        else:
            self.description = description or (function.__doc__ or self.name).partition("\n")[0]
            self._filled, self._context = _filled(function, schema), "ctx"
        self.parameters = schema
        self._title, self._locations = title, locations
        self._prepare, self._preview, self._check = prepare, preview, check
        self._optional = {*schema["properties"]} - {*schema.get("required", ())}

    @functools.cached_property
    def _problem(self) -> Callable[[Args], str | None]:
        """What judges arguments by the schema."""
        from crow.tools.checker import Checker

        return Checker(self.parameters)

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
        for name, key, read in self._filled:
            if key in given:
                bound[name] = _read(key, read, given[key]) if read else given[key]
        if self._context:
            bound[self._context] = ctx
        return bound


def _filled(function: Callable[..., Any], schema: dict[str, Any]) -> list[Filled]:
    """What the arguments of a schema fill."""
    code = function.__code__
    names, nodes = code.co_varnames[1 : code.co_argcount], schema["properties"].items()
    found: list[Filled] = []
    for name, (key, node) in zip(names, nodes, strict=True):
        found.append((name, key, int if node["type"] == "integer" else None))  # 2.0 is one in JSON
    return found


def _read(key: str, read: Reader, value: Any) -> Any:
    try:
        return read(value)
    except (ValueError, TypeError) as error:
        raise ToolError(f"{key}: {error}") from error


def _result(value: Any) -> ToolResult | str:
    if value is None:
        return "(no output)"
    if hasattr(value, "model_dump"):
        return ToolResult.of(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, ToolResult | type):
        return ToolResult.of(dataclasses.asdict(value))
    return ToolResult.of(value)


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
