"""`@tool` keeps the function's own type, whichever way it is written."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, assert_type

from crow import Tool, ToolEnvironment, tool
from crow.tools import FunctionTool, builtin


@tool
def plain(city: str, days: int = 1) -> str:
    return city * days


@tool(name="Named", kind="fetch", title="Fetch {url}")
async def named(ctx: ToolEnvironment, url: str) -> list[str]:
    return [ctx.cwd, url]


async def use(ctx: ToolEnvironment) -> None:
    assert_type(plain("x", days=2), str)
    assert_type(await named(ctx, "x"), list[str])
    plain(3)  # pyright: ignore[reportArgumentType]
    plain("x", hours=1)  # pyright: ignore[reportCallIssue]
    tool(kind="nothing")  # pyright: ignore[reportArgumentType]


def fits(one: Tool, all_of_them: tuple[Tool, ...]) -> None:
    """A decorated function is a `Tool`."""


fits(plain, builtin())
fits(named, (plain, named))
made: FunctionTool[[str], Awaitable[Any]] = named  # pyright: ignore[reportAssignmentType]
