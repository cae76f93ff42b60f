"""File tools on files of any size and kind: in bounded memory and time, or not at all."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GIB = 1 << 30
PROBE = """
import asyncio, json, resource, sys
from types import SimpleNamespace
from crow.core.tools import ToolResult
from crow.core.ports.client import NullClient
from crow.tools import builtin

tools = {tool.name: tool for tool in builtin()}
name, cwd, args = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
bench = SimpleNamespace(cwd=cwd, roots=(cwd,), session_id="s", cache={}, client=NullClient())
result = ToolResult.of(asyncio.run(tools[name].run(args, bench)))
status = open("/proc/self/status").read()  # a resource's usage would begin with the parent's
used = [int(status.partition("VmHWM:")[2].split()[0]),
        resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]
print(json.dumps({"text": result.text[:2500], "error": result.error, "used": used}))
"""


async def probe(tool: str, cwd: Path, **args: Any) -> dict[str, Any]:
    """What a tool answers in a process of its own, and how many KiB that and its children had."""
    run = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", PROBE, tool, str(cwd), json.dumps(args)],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    told: dict[str, Any] = json.loads(run.stdout)
    return told


def sparse(folder: Path, start: bytes = b"", size: int = 6 * GIB) -> Path:
    """A file of 6 GiB that takes no room."""
    path = folder / "sparse"
    with path.open("wb") as file:
        file.write(start)
        file.truncate(size)
    return path


def one_line(folder: Path) -> Path:
    """A text of 300 MB without a line end but one at its end."""
    path = folder / "line"
    words = b"word " * 200_000
    with path.open("wb") as file:
        for _ in range(300):
            file.write(words)
        file.write(b"\nthe last line\n")
    return path


def picture(folder: Path) -> Path:
    """What begins like an image and goes on for 6 GiB."""
    return sparse(folder, b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize(
    "make, tool, args, reason",
    [
        (sparse, "Read", {}, "is binary"),
        (picture, "Read", {}, "images up to"),
        (one_line, "Read", {"limit": 1}, "bytes more]"),
        (one_line, "Read", {"offset": 2}, "fewer than 2 lines|the last line"),
        (sparse, "Edit", {"old_string": "a", "new_string": "b"}, "more than fit"),
        (sparse, "Write", {"content": "b"}, "more than fit"),
        (sparse, "Grep", {"pattern": "needle", "path": "."}, "No matches found"),
        (one_line, "Grep", {"pattern": "needle", "path": "."}, "No matches found"),
        (one_line, "Grep", {"pattern": "last", "output_mode": "content"}, "the last line"),
    ],
)
@pytest.mark.variants(4)
async def test_no_file_is_too_large(
    tmp_path: Path,
    make: Callable[[Path], Path],
    tool: str,
    args: dict[str, Any],
    reason: str,
) -> None:
    path = make(tmp_path)
    where = {} if "path" in args else {"path" if tool == "Grep" else "file_path": str(path)}
    told = await probe(tool, tmp_path, **where, **args)
    path.unlink()
    assert any(one in told["text"] for one in reason.split("|")), told["text"]
    own, programs = told["used"]
    assert own < 200 * 1024
    assert tool == "Grep" or programs < 200 * 1024


@pytest.mark.parametrize("tool", ["Read", "Edit", "Write", "Grep"])
@pytest.mark.parametrize("kind", ["pipe", "device", "socket"])
async def test_what_is_no_regular_file_is_not_opened(
    bench: Any, monkeypatch: pytest.MonkeyPatch, tool: str, kind: str
) -> None:
    path = bench.path("odd")
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            import socket

            with socket.socket(socket.AF_UNIX) as made:
                monkeypatch.chdir(bench.cwd)  # the name of a socket must be short
                made.bind("odd")
        case _:
            path = Path("/dev/zero")
    args: dict[str, Any] = {"Grep": {"path": str(path), "pattern": "x"}}.get(
        tool, {"file_path": str(path)}
    )
    args |= {"Edit": {"old_string": "a", "new_string": "b"}, "Write": {"content": "x"}}.get(
        tool, {}
    )
    result = await bench.use(tool, **args)
    assert result.error
    assert "no regular file" in result.text or "No such device" in result.text


async def test_files_that_the_system_makes_up_are_read(bench: Any) -> None:
    result = await bench.use("Read", file_path="/proc/self/status")
    assert "VmRSS" in result.text


async def test_searches_pass_by_pipes_and_links(bench: Any) -> None:
    os.mkfifo(bench.path("pipe"))
    bench.put("a.txt", "needle\n")
    bench.path("link").symlink_to("/dev/zero")
    assert (await bench.use("Grep", pattern="needle", glob="*.txt")).text == "a.txt"
    assert (await bench.use("Glob", pattern="*")).text == "a.txt"


async def test_long_lines_are_cut(bench: Any) -> None:
    bench.put("a.txt", "needle " + "x" * 1_000_000 + "\n")
    found = await bench.use("Grep", pattern="needle", output_mode="content")
    assert len(found.text) < 1000
    assert len((await bench.use("Read", file_path="a.txt")).text) < 3000


async def test_an_edit_that_would_make_a_file_too_large_is_refused(bench: Any) -> None:
    bench.put("a.txt", "a" * 100_000)
    await bench.use("Read", file_path="a.txt")
    args = {"old_string": "a", "new_string": "b" * 10_000, "replace_all": True}
    result = await bench.use("Edit", file_path="a.txt", **args)
    assert "would have more than" in result.text
    assert bench.path("a.txt").read_text() == "a" * 100_000


async def test_many_occurrences_are_counted_as_far_as_anybody_cares(bench: Any) -> None:
    bench.put("a.txt", "a" * 5_000_000)
    await bench.use("Read", file_path="a.txt")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await bench.use("Edit", file_path="a.txt", old_string="a", new_string="b")
    assert "more than 999 times" in result.text
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


@pytest.mark.slow
async def test_thousands_of_files_are_listed_newest_first(bench: Any) -> None:
    for number in range(4_000):
        bench.path(f"{number}-{'x' * 200}").touch()
    newest = bench.put("newest", "")
    os.utime(newest, (4_000_000_000, 4_000_000_000))
    found = await bench.use("Glob", pattern="*")
    assert found.text.startswith("newest\n")
    assert "(100 of 4001 are shown" in found.text
