"""The built-in tools as the model is told of them; what they do is imported with a first call."""

# Annotations are values here, not text: that saves their evaluation at every start.

from importlib import import_module
from typing import Annotated, Any, Literal

from crow.annotations.arg import Arg
from crow.core.ports import ToolEnvironment
from crow.core.tools import ToolResult
from crow.tools.function import Preview, tool
from crow.tools.paths import file_location, with_absolute_path


def preview_in(home: str) -> Preview:
    """The ``preview`` of a file, which is imported when it is first called."""

    async def preview(**given: Any) -> ToolResult | None:
        return await import_module(f"crow.tools.{home}").preview(**given)

    return preview


@tool(
    name="Read",
    kind="read",
    title="Read {file_path}",
    locations=file_location,
    prepare=with_absolute_path,
    preview=preview_in("read"),
)
async def read(
    ctx: ToolEnvironment,
    file_path: Annotated[str, "Path of the file, best absolute."],
    offset: Annotated[int, "The first line to show, counted from 1."] = 1,
    limit: Annotated[int, "How many lines to show."] = 2000,
) -> ToolResult:
    """Read a text file, with line numbers as `cat -n` gives them, or an image.

    By default the first 2000 lines; `offset` and `limit` show others. Read a file before you
    edit or overwrite it.
    """
    from crow.tools.read import run

    return await run(ctx, file_path, offset, limit)


@tool(
    name="Write",
    kind="edit",
    title="Write {file_path}",
    locations=file_location,
    prepare=with_absolute_path,
    preview=preview_in("write"),
)
async def write(
    ctx: ToolEnvironment,
    file_path: Annotated[str, "Path of the file, best absolute; folders are made."],
    content: Annotated[str, "The whole new text of the file."],
) -> ToolResult:
    """Create a file, or replace the whole of one that you have read in this session.

    To change a part of a file, use Edit.
    """
    from crow.tools.write import run

    return await run(ctx, file_path, content)


@tool(
    name="Edit",
    kind="edit",
    title="Edit {file_path}",
    locations=file_location,
    prepare=with_absolute_path,
    preview=preview_in("edit"),
)
async def edit(
    ctx: ToolEnvironment,
    file_path: Annotated[str, "Path of the file, best absolute."],
    old_string: Annotated[str, "The text to replace, exactly as it is in the file."],
    new_string: Annotated[str, "The text that takes its place."],
    replace_all: Annotated[bool, "Replace every occurrence."] = False,
) -> ToolResult:
    """Replace one exact piece of text in a file that you have read in this session.

    `old_string` must match exactly, indentation included and line numbers not, and occur once,
    unless `replace_all` is true. An empty `old_string` creates the file.
    """
    from crow.tools.edit import run

    return await run(ctx, file_path, old_string, new_string, replace_all)


def _command_title(args: dict[str, Any]) -> str:
    command, description = str(args["command"]), str(args.get("description") or "")
    return f"{command}  # {' '.join(description.split())}" if description else command


@tool(name="Bash", kind="execute", title=_command_title, preview=preview_in("bash"))
async def bash(
    ctx: ToolEnvironment,
    command: Annotated[str, "The command line, for bash."],
    description: Annotated[str, "What it does, in 5 to 10 words, for the user."] = "",
    timeout: Annotated[int, "Milliseconds until it is ended; at most 600000."] = 120_000,
    run_in_background: Annotated[
        bool, "Return at once; BashOutput reads its output, KillShell ends it."
    ] = False,
) -> ToolResult:
    """Run a command line with bash in the session's directory and return what it prints.

    Every command starts in that directory, in a new shell: `cd` and variables do not last.
    Standard input is empty and there is no terminal.
    """
    from crow.tools.bash import run
    from crow.tools.bash import run_in_background as start

    return await (start(ctx, command) if run_in_background else run(ctx, command, timeout))


@tool(
    name="BashOutput",
    kind="read",
    title="Output of {bash_id}",
    preview=preview_in("background"),
)
async def bash_output(
    ctx: ToolEnvironment,
    bash_id: Annotated[str, "The id that Bash gave."],
    filter: Annotated[str, "A regular expression: only lines that match are shown."] = "",  # noqa: A002
    wait: Annotated[int, "Milliseconds to wait for the command's end, 0 for not at all."] = 0,
) -> ToolResult:
    """Read what a background command printed since the last look, and whether it still runs."""
    from crow.tools.background import show

    return await show(ctx, bash_id, filter, wait)


@tool(name="KillShell", kind="execute", title="End {shell_id}", preview=preview_in("background"))
async def kill_shell(
    ctx: ToolEnvironment, shell_id: Annotated[str, "The id that Bash gave."]
) -> ToolResult:
    """End a background command and everything that it started."""
    from crow.tools.background import end

    return await end(ctx, shell_id)


@tool(name="Glob", kind="search", title="Find {pattern}", preview=preview_in("glob"))
async def glob(
    ctx: ToolEnvironment,
    pattern: Annotated[str, "A glob such as `*.py` (at any depth) or `src/**/*.ts`."],
    path: Annotated[str, "The folder to look in; the session's directory by default."] = "",
) -> ToolResult:
    """Find files by name, the most recently changed first; what .gitignore names is left out."""
    from crow.tools.glob import run

    return await run(ctx, pattern, path)


@tool(name="Grep", kind="search", title="Search {pattern}", preview=preview_in("grep"))
async def grep(
    ctx: ToolEnvironment,
    pattern: Annotated[str, "A regular expression (ripgrep's)."],
    path: Annotated[str, "A file or folder; the session's directory by default."] = "",
    glob: Annotated[str, "Only files that match, such as `*.{ts,tsx}`."] = "",
    type: Annotated[str, "Only files of a type that ripgrep knows, such as py."] = "",  # noqa: A002
    output_mode: Annotated[
        Literal["content", "files_with_matches", "count"],
        "Matching lines, file names, or matches a file.",
    ] = "files_with_matches",
    ignore_case: Annotated[bool, Arg("Ignore case.", name="-i")] = False,
    numbers: Annotated[bool, Arg("Show line numbers (content).", name="-n")] = True,
    after: Annotated[int, Arg("Lines to show after a match (content).", name="-A")] = 0,
    before: Annotated[int, Arg("Lines to show before a match (content).", name="-B")] = 0,
    around: Annotated[int, Arg("Lines to show around a match (content).", name="-C")] = 0,
    multiline: Annotated[bool, "Let `.` and patterns go over line ends."] = False,
    head_limit: Annotated[int, "Show the first so many lines or files; 0 for all."] = 250,
) -> ToolResult:
    """Search files with ripgrep; what .gitignore names is left out, and binary files are."""
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


@tool(name="LS", kind="read", title="List {path}", preview=preview_in("ls"))
async def ls(
    ctx: ToolEnvironment,
    path: Annotated[str, "The directory; the session's by default."] = ".",
    ignore: Annotated[list[str] | None, "Globs of names to leave out."] = None,
) -> ToolResult:
    """List the names in a directory; directories end with a slash, links show where they lead."""
    from crow.tools.ls import run

    return await run(ctx, path, ignore or [])


BUILTIN = (read, write, edit, bash, bash_output, kill_shell, glob, grep, ls)
"""In the order of the request."""
