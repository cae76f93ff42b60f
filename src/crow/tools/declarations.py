"""The built-in tools as the model is told of them; what they do is imported with a first call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from crow.core.ports.tool import ToolEnvironment
from crow.core.support.frozen import kept
from crow.core.tools import ToolResult
from crow.tools.function import FunctionTool, Preview
from crow.tools.paths import file_location, with_absolute_path, wrong_path

if TYPE_CHECKING:
    from crow.core.ports.tool import Tool, ToolEnvironment
    from crow.core.tools import ToolResult

P = ParamSpec("P")
R = TypeVar("R")
JSONSchema = dict[str, Any]
TEXT = kept({"type": "string"})
Mode = Literal["content", "files_with_matches", "count"]
SHAPES: Mapping[str, JSONSchema] = {
    "str": TEXT,
    "int": kept({"type": "integer"}),
    "bool": kept({"type": "boolean"}),
    "Mode": TEXT | {"enum": ["content", "files_with_matches", "count"]},
    "Sequence[str]": {"type": "array", "items": TEXT},
}
"""What an annotation means, as it is written: every start needs it, and its types nobody."""


def declared(
    keys: Mapping[str, str] = MappingProxyType({}), **options: Any
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function; ``keys`` are what arguments are called that have no such name."""

    def made(function: Callable[P, R]) -> FunctionTool[P, R]:
        whole: Any = function
        names = [name for name in whole.__annotations__ if name not in ("ctx", "return")]
        given: tuple[Any, ...] = whole.__defaults__ or ()
        defaults = dict(zip(reversed(names), reversed(given), strict=False))
        schema: JSONSchema = {"type": "object", "properties": {}, "additionalProperties": False}
        for name in names:
            default = defaults.get(name)
            shape = SHAPES[whole.__annotations__[name]] | ({"default": default} if default else {})
            schema["properties"][keys.get(name, name)] = shape
        if required := names[: len(names) - len(given)]:
            schema["required"] = required
        return FunctionTool(function, schema=schema, **options)

    return made


def preview_in(home: str) -> Preview:
    """The ``preview`` of a file, which is imported when it is first called."""

    async def preview(**given: Any) -> ToolResult | None:
        return await import_module(f"crow.tools.{home}").preview(**given)

    return preview


@declared(
    name="Read",
    kind="read",
    title="Read {file_path}",
    locations=file_location,
    prepare=with_absolute_path,
    preview=preview_in("read"),
    check=wrong_path,
)
async def read(
    ctx: ToolEnvironment, file_path: str, offset: int = 1, limit: int = 2000
) -> ToolResult:
    """Show a text file, lines numbered from 1, or an image."""
    from crow.tools.read import run

    return await run(ctx, file_path, offset, limit)


@declared(
    name="Write",
    kind="edit",
    title="Write {file_path}",
    locations=file_location,
    prepare=with_absolute_path,
    preview=preview_in("write"),
    check=wrong_path,
)
async def write(ctx: ToolEnvironment, file_path: str, content: str) -> ToolResult:
    """Create a file, or replace one you have read."""
    from crow.tools.write import run

    return await run(ctx, file_path, content)


@declared(
    name="Edit",
    kind="edit",
    title="Edit {file_path}",
    locations=file_location,
    prepare=with_absolute_path,
    preview=preview_in("edit"),
    check=wrong_path,
)
async def edit(
    ctx: ToolEnvironment,
    file_path: str,
    old_string: str,
    new_string: str,
    replace_all: bool = False,
) -> ToolResult:
    """Replace text in a file you have read. old_string is exact, and unique unless replace_all.

    Indentation counts, and line numbers are not part of it. An empty one creates the file.
    """
    from crow.tools.edit import run

    return await run(ctx, file_path, old_string, new_string, replace_all)


def _command_title(args: dict[str, Any]) -> str:
    command, description = str(args["command"]), str(args.get("description") or "")
    return f"{command}  # {' '.join(description.split())}" if description else command


@declared(name="Bash", kind="execute", title=_command_title, preview=preview_in("bash"))
async def bash(
    ctx: ToolEnvironment,
    command: str,
    description: str = "",
    timeout: int = 120_000,
    run_in_background: bool = False,
) -> ToolResult:
    """Run command in a new bash. timeout: ms; description: 5-10 words."""
    from crow.tools.bash import run
    from crow.tools.bash import run_in_background as start

    return await (start(ctx, command) if run_in_background else run(ctx, command, timeout))


@declared(
    name="BashOutput", kind="read", title="Output of {bash_id}", preview=preview_in("background")
)
async def bash_output(
    ctx: ToolEnvironment,
    bash_id: str,
    filter: str = "",  # noqa: A002
    wait: int = 0,
) -> ToolResult:
    """Show a background command's new output; filter is a regex for lines, wait in ms."""
    from crow.tools.background import show

    return await show(ctx, bash_id, filter, wait)


@declared(
    name="KillShell", kind="execute", title="End {shell_id}", preview=preview_in("background")
)
async def kill_shell(ctx: ToolEnvironment, shell_id: str) -> ToolResult:
    """End a background command."""
    from crow.tools.background import end

    return await end(ctx, shell_id)


@declared(
    name="Glob", kind="search", title="Find {pattern}", preview=preview_in("glob"), check=wrong_path
)
async def glob(ctx: ToolEnvironment, pattern: str, path: str = "") -> ToolResult:
    """Find files, newest first, by a pattern like src/**/*.ts. Heeds .gitignore."""
    from crow.tools.glob import run

    return await run(ctx, pattern, path)


@declared(
    name="Grep",
    keys={"ignore_case": "-i", "numbers": "-n", "after": "-A", "before": "-B", "around": "-C"},
    kind="search",
    title="Search {pattern}",
    preview=preview_in("grep"),
    check=wrong_path,
)
async def grep(
    ctx: ToolEnvironment,
    pattern: str,
    path: str = "",
    glob: str = "",
    type: str = "",  # noqa: A002
    output_mode: Mode = "files_with_matches",
    ignore_case: bool = False,
    numbers: bool = True,
    after: int = 0,
    before: int = 0,
    around: int = 0,
    multiline: bool = False,
    head_limit: int = 250,
) -> ToolResult:
    """Search files with ripgrep. -n, -A, -B and -C go with content."""
    from crow.tools.grep import Search, run

    search = Search(
        pattern,
        path,
        glob,
        type,
        output_mode,
        ignore_case,
        numbers,
        max(before, around, 0),
        max(after, around, 0),
        multiline,
    )
    return await run(ctx, search, max(head_limit, 0))


@declared(name="LS", kind="read", title="List {path}", preview=preview_in("ls"), check=wrong_path)
async def ls(ctx: ToolEnvironment, path: str = "", ignore: Sequence[str] = ()) -> ToolResult:
    """List a directory."""
    from crow.tools.ls import run

    return await run(ctx, path, list(ignore))


def builtin() -> tuple[Tool, ...]:
    """The tools that every agent has unless it is given others, in the order of the request."""
    return (read, write, edit, bash, bash_output, kill_shell, glob, grep, ls)
