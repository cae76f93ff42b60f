"""Read, Write and Edit on the disk: exact bytes, files the model knows, links it must not follow."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from crow.core.tools import Diff, Location
from crow.tools.errors import ToolError
from crow.tools.replacement import replaced

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


async def test_read_shows_lines_with_numbers(bench: Any) -> None:
    path = bench.put("a.txt", "one\n\nthree\n")
    result = await bench.use("Read", file_path="a.txt")
    assert result.text == "     1\tone\n     2\t\n     3\tthree"
    assert result.data == {
        "type": "text",
        "file": {
            "filePath": str(path),
            "content": "one\n\nthree",
            "numLines": 3,
            "startLine": 1,
            "totalLines": 3,
        },
    }


async def test_read_shows_a_part_and_says_how_to_go_on(bench: Any) -> None:
    bench.put("a.txt", "".join(f"line {n}\n" for n in range(1, 11)))
    result = await bench.use("Read", file_path="a.txt", offset=3, limit=2)
    assert result.text == snapshot("""\
     3	line 3
     4	line 4
(Lines 3 to 4 of 10 are shown; go on with offset 5.)\
""")
    assert result.locations == (Location(str(bench.path("a.txt")), 3),)


async def test_read_cuts_long_lines_and_long_files(bench: Any) -> None:
    bench.put("a.txt", "x" * 5000 + "\n" + ("y" * 1000 + "\n") * 200)
    result = await bench.use("Read", file_path="a.txt")
    first = result.text.split("\n")[0]
    assert first.endswith("x[... 3000 characters more]")
    assert len(result.text) < 81_000
    assert "of 201 are shown; go on with offset" in result.text


async def test_read_goes_by_newlines_alone(bench: Any) -> None:
    bench.put("a.txt", "a\x0cb\u2028c\r\nd")
    result = await bench.use("Read", file_path="a.txt")
    assert result.data["file"]["totalLines"] == 2


async def test_read_of_an_empty_file_says_so(bench: Any) -> None:
    bench.put("a.txt", "")
    assert (await bench.use("Read", file_path="a.txt")).text == "(The file is empty.)"


@pytest.mark.parametrize(
    "name,error",
    [
        ("README.txt", "README.txt does not exist. There is: {cwd}/README.md"),
        ("no/where.txt", "does not exist, nor does its folder. The session's directory is {cwd}."),
        ("folder", "folder is a directory. LS lists it."),
        ("odd.txt", "odd.txt is binary, not text (5 bytes)."),
        ("wide.txt", "wide.txt is binary, not text (3 bytes)."),
        ("big.png", "images up to 5242880 can be looked at."),
        ("~nobody-at-all/x", "does not exist"),
        ("binary.bin", "binary.bin is binary, not text (4 bytes)."),
        ("pipe", "pipe is no regular file (a device, a pipe or a socket)."),
        ("a\0b", "no path has a NUL character"),
        ("x" * 300, "a name in it has 300 bytes, and 255 is the most"),
    ],
)
async def test_read_says_what_is_wrong(bench: Any, name: str, error: str) -> None:
    bench.put("README.md", "hi")
    bench.put("folder/x", "")
    bench.put("binary.bin", b"a\0b\1")
    bench.put("odd.txt", b"\xff\x01abc")
    bench.put("wide.txt", b"\xff\xfea")
    bench.put("big.png", PNG + b"\0" * 6_000_000)
    os.mkfifo(bench.path("pipe"))
    result = await bench.use("Read", file_path=name)
    assert result.error
    assert error.format(cwd=bench.cwd) in result.text


async def test_an_offset_behind_the_end_is_an_error(bench: Any) -> None:
    bench.put("a.txt", "one\n")
    result = await bench.use("Read", file_path="a.txt", offset=5)
    assert result.text.endswith("has 1 lines; offset 5 is behind its end.")


async def test_read_shows_an_image_as_a_part(bench: Any) -> None:
    bench.put("a.png", PNG)
    result = await bench.use("Read", file_path="a.png")
    assert result.content[1]["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgo")
    assert result.data["type"] == "image"


@pytest.mark.parametrize("start", [b"\xff\xd8\xff", b"GIF89a", b"RIFF0000WEBP"])
async def test_other_images_are_recognised(bench: Any, start: bytes) -> None:
    bench.put("picture", start + b"\0" * 20)
    assert (await bench.use("Read", file_path="picture")).data["type"] == "image"


async def test_a_huge_file_is_read_in_parts_only(bench: Any) -> None:
    path = bench.put("a.log", "")
    with path.open("w") as file:
        file.writelines(f"{n:0>999}\n" for n in range(17_000))
    result = await bench.use("Read", file_path="a.log", offset=16_001, limit=1)
    assert result.data["file"]["content"] == f"{16_000:0>999}"
    edit = await bench.use("Edit", file_path="a.log", old_string="0", new_string="1")
    assert "more than fit into one piece" in edit.text


async def test_write_creates_a_file_and_its_folders(bench: Any) -> None:
    result = await bench.use("Write", file_path="new/deep/a.txt", content="héllo\n")
    path = bench.path("new/deep/a.txt")
    assert path.read_bytes() == "héllo\n".encode()
    assert result.text == f"Created {path} (1 line)."
    assert result.diffs == (Diff(str(path), None, "héllo\n"),)
    assert result.data == {
        "type": "create",
        "filePath": str(path),
        "content": "héllo\n",
        "structuredPatch": [],
        "originalFile": None,
    }


async def test_write_refuses_a_file_that_was_not_read(bench: Any) -> None:
    path = bench.put("a.txt", "precious")
    result = await bench.use("Write", file_path="a.txt", content="x")
    assert result.error
    assert result.text == f"{path} has not been read in this session. Read it first."
    assert path.read_text() == "precious"


@pytest.mark.parametrize("tool", ["Write", "Edit"])
async def test_t09_a_file_that_changed_since_it_was_read_is_refused(bench: Any, tool: str) -> None:
    path = bench.put("a.txt", "one")
    await bench.use("Read", file_path="a.txt")
    path.write_text("two")
    more = {"content": "x"} if tool == "Write" else {"old_string": "two", "new_string": "x"}
    result = await bench.use(tool, file_path="a.txt", **more)
    assert "has changed since it was read" in result.text
    assert path.read_text() == "two"
    await bench.use("Read", file_path="a.txt")
    assert not (await bench.use(tool, file_path="a.txt", **more)).error


async def test_write_replaces_a_file_that_was_read_and_keeps_its_mode(bench: Any) -> None:
    path = bench.put("run.sh", "one\ntwo\n")
    path.chmod(0o750)
    await bench.use("Read", file_path="run.sh")
    result = await bench.use("Write", file_path="run.sh", content="one\n2\n")
    assert path.read_text() == "one\n2\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert result.text == f"Replaced {path} (+1 -1)."
    assert result.data["originalFile"] == "one\ntwo\n"
    assert result.data["structuredPatch"] == snapshot(
        [
            {
                "oldStart": 1,
                "oldLines": 2,
                "newStart": 1,
                "newLines": 2,
                "lines": [" one", "-two", "+2"],
            }
        ]
    )
    assert [entry.name for entry in path.parent.iterdir()] == ["run.sh"]


async def test_what_was_written_can_be_edited_without_reading_it(bench: Any) -> None:
    await bench.use("Write", file_path="a.txt", content="one two")
    result = await bench.use("Edit", file_path="a.txt", old_string="two", new_string="three")
    assert not result.error
    assert bench.path("a.txt").read_text() == "one three"


async def test_edits_of_one_turn_do_not_lose_each_other(bench: Any) -> None:
    bench.put("a.txt", "".join(f"<{n}>\n" for n in range(8)))
    await bench.use("Read", file_path="a.txt")
    edits = [
        bench.use("Edit", file_path="a.txt", old_string=f"<{n}>", new_string=f"[{n}]")
        for n in range(8)
    ]
    results = await asyncio.gather(*edits)
    assert not any(result.error for result in results)
    assert bench.path("a.txt").read_text() == "".join(f"[{n}]\n" for n in range(8))


async def test_a_write_that_cannot_be_done_leaves_nothing_behind(bench: Any) -> None:
    bench.put("file", "x")
    for name, why in (("file/below.txt", "cannot be written"), ("y" * 300, "255 is the most")):
        result = await bench.use("Write", file_path=name, content="x")
        assert result.error
        assert why in result.text
    assert [entry.name for entry in bench.path("").iterdir()] == ["file"]


async def test_a_long_change_is_one_hunk(bench: Any) -> None:
    bench.put("a.txt", "".join(f"{n}\n" for n in range(3000)))
    await bench.use("Read", file_path="a.txt")
    new = "".join(f"{n * 7}\n" for n in range(3000))
    result = await bench.use("Write", file_path="a.txt", content=new)
    assert len(result.data["structuredPatch"]) == 1
    same = await bench.use("Write", file_path="a.txt", content=new)
    assert same.data["structuredPatch"] == []


async def test_edit_tells_hooks_and_people_what_changed(bench: Any) -> None:
    path = bench.put("a.txt", "a\nb\nc\n")
    await bench.use("Read", file_path="a.txt")
    result = await bench.use("Edit", file_path="a.txt", old_string="b", new_string="B")
    assert result.text == f"Edited {path} at line 2 (+1 -1)."
    assert result.diffs == (Diff(str(path), "a\nb\nc\n", "a\nB\nc\n"),)
    assert result.locations == (Location(str(path), 2),)
    patch = result.data.pop("structuredPatch")
    assert patch[0]["lines"] == [" a", "-b", "+B", " c"]
    assert result.data == {
        "filePath": str(path),
        "oldString": "b",
        "newString": "B",
        "originalFile": "a\nb\nc\n",
        "userModified": False,
        "replaceAll": False,
    }


async def test_a_patch_counts_the_lines_of_the_file_and_tells_of_a_missing_line_end(
    bench: Any,
) -> None:
    bench.put("a.txt", "one\n")
    await bench.use("Read", file_path="a.txt")
    result = await bench.use("Edit", file_path="a.txt", old_string="one", new_string="two")
    whole = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1}
    assert result.data["structuredPatch"] == [{**whole, "lines": ["-one", "+two"]}]
    result = await bench.use("Write", file_path="a.txt", content="two")
    unended = ["-two", "+two", "\\ No newline at end of file"]
    assert result.data["structuredPatch"] == [{**whole, "lines": unended}]
    result = await bench.use("Write", file_path="a.txt", content="")
    gone = {**whole, "newLines": 0, "lines": ["-two", "\\ No newline at end of file"]}
    assert result.data["structuredPatch"] == [gone]


async def test_edit_keeps_line_ends_and_byte_order_mark(bench: Any) -> None:
    path = bench.put("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    await bench.use("Read", file_path="a.txt")
    result = await bench.use(
        "Edit", file_path="a.txt", old_string="one\ntwo", new_string="1\n2\n2b"
    )
    assert not result.error
    assert path.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n2b\r\nthree\r\n"


@pytest.mark.parametrize(
    "data",
    ["caf\u00e9 old".encode("latin-1"), "\ufeffcafé old".encode("utf-16-le"), b"a\xffold\x80"],
)
async def test_edit_keeps_the_encoding(bench: Any, data: bytes) -> None:
    path = bench.put("a.txt", data)
    await bench.use("Read", file_path="a.txt")
    await bench.use("Edit", file_path="a.txt", old_string="old", new_string="new")
    wide = data.startswith(b"\xff\xfe")
    old, new = ("old".encode("utf-16-le"), "new".encode("utf-16-le")) if wide else (b"old", b"new")
    assert path.read_bytes() == data.replace(old, new)


async def test_a_character_that_the_encoding_lacks_is_an_error(bench: Any) -> None:
    path = bench.put("a.txt", "café".encode("latin-1"))
    await bench.use("Read", file_path="a.txt")
    result = await bench.use("Edit", file_path="a.txt", old_string="caf", new_string="→")
    assert "latin-1 cannot hold: U+2192" in result.text
    assert path.read_bytes() == "café".encode("latin-1")


async def test_edit_with_an_empty_old_string_creates_a_file(bench: Any) -> None:
    result = await bench.use("Edit", file_path="n.txt", old_string="", new_string="hi")
    assert result.text == f"Created {bench.path('n.txt')}."
    again = await bench.use("Edit", file_path="n.txt", old_string="", new_string="ho")
    assert "is not empty" in again.text


@pytest.mark.parametrize(
    "old,error",
    [
        ("same", "nothing to change"),
        ("foo", "old_string occurs 3 times in {path} (lines 1, 2, 4). Give more"),
        (
            "\tif x:\n\t\tfoo2()",
            (
                "At line 3 it differs in blanks alone (tabs, spaces, indentation). There it reads:\n"
                "     3\t    if x:\n     4\t        foo2()"
            ),
        ),
        ("     3\t    if x:", "It contains line numbers as Read shows them"),
        (
            "    if y:\n        foo2()",
            "alike, is line 3:\n     3\t    if x:\n     4\t        foo2()",
        ),
        ("zebra crossing", "Nothing in the file is like it"),
    ],
)
async def test_edit_helps_where_nothing_matches(bench: Any, old: str, error: str) -> None:
    path = bench.put("a.py", "foo\nfoo1\n    if x:\n        foo2()\n")
    await bench.use("Read", file_path="a.py")
    result = await bench.use("Edit", file_path="a.py", old_string=old, new_string="same")
    assert result.error
    assert error.format(path=path) in result.text
    assert path.read_text() == "foo\nfoo1\n    if x:\n        foo2()\n"


async def test_replace_all_replaces_every_occurrence(bench: Any) -> None:
    path = bench.put("a.txt", "x y x\nx")
    await bench.use("Read", file_path="a.txt")
    result = await bench.use(
        "Edit", file_path="a.txt", old_string="x", new_string="z", replace_all=True
    )
    assert "in 3 places, first at line 1" in result.text
    assert path.read_text() == "z y z\nz"


async def test_edit_of_a_missing_file_names_near_ones(bench: Any) -> None:
    bench.put("main.py", "x")
    result = await bench.use("Edit", file_path="mian.py", old_string="a", new_string="b")
    assert result.text.endswith(f"There is: {bench.path('main.py')}.")


async def test_a_relative_path_becomes_absolute_before_hooks_see_it(bench: Any, home: Path) -> None:
    from crow.tools.declarations import edit

    assert edit.prepare({"file_path": "a/../b.txt"}, "/w") == {"file_path": "/w/b.txt"}
    assert edit.prepare({"file_path": "~/x"}, "/w") == {"file_path": str(home / "x")}
    assert edit.prepare({"file_path": 3}, "/w") == {"file_path": 3}
    assert edit.locations({"file_path": "x"}, "/w") == (Location("/w/x"),)
    assert edit.title({"file_path": "/w/x"}) == "Edit /w/x"


@pytest.mark.parametrize("tool", ["Write", "Edit"])
async def test_t09_a_link_is_not_written_through(bench: Any, tool: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("theirs")
    bench.path("link.txt").symlink_to(outside)
    more = {"content": "x"} if tool == "Write" else {"old_string": "theirs", "new_string": "x"}
    result = await bench.use(tool, file_path="link.txt", **more)
    assert result.error
    assert f"leads through a symbolic link to {outside}" in result.text
    assert outside.read_text() == "theirs"


async def test_t09_a_linked_folder_is_not_written_through(bench: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    bench.path("folder").symlink_to(outside)
    result = await bench.use("Write", file_path="folder/new.txt", content="x")
    assert f"{outside}/new.txt" in result.text
    assert list(outside.iterdir()) == []


async def test_t09_reading_does_not_follow_a_link_out_of_the_workspace(
    bench: Any, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    bench.path("link").symlink_to(secret)
    result = await bench.use("Read", file_path="link")
    assert result.error
    assert "outside of the workspace" in result.text
    assert not (await bench.use("Read", file_path=str(secret))).error


async def test_a_link_inside_the_workspace_can_be_read(bench: Any) -> None:
    bench.put("AGENTS.md", "hi")
    bench.path("CLAUDE.md").symlink_to("AGENTS.md")
    assert "hi" in (await bench.use("Read", file_path="CLAUDE.md")).text


async def test_a_workspace_that_is_itself_a_link_can_be_written(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(bench.cwd)
    bench.cwd = str(tmp_path / "alias")
    bench.roots = (bench.cwd,)
    assert not (await bench.use("Write", file_path="a/b.txt", content="x")).error
    assert (tmp_path / "project/a/b.txt").read_text() == "x"


async def test_t09_a_folder_swapped_for_a_link_after_the_check_is_not_followed(
    bench: Any, tmp_path: Path
) -> None:
    from crow.tools.disk import read_whole, replace_file

    outside = tmp_path / "outside"
    outside.mkdir()
    path = bench.put("folder/a.txt", "mine")
    found = read_whole(str(path))
    assert found is not None
    path.parent.rename(tmp_path / "moved")
    path.parent.symlink_to(outside)
    with pytest.raises(OSError, match=r"folder|Not a directory|symbolic"):
        replace_file(str(path), b"x", found[1])
    assert list(outside.iterdir()) == []


async def test_t09_a_file_swapped_between_reading_and_renaming_is_left_alone(
    bench: Any, tmp_path: Path
) -> None:
    from crow.tools.disk import read_whole, replace_file

    path = bench.put("a.txt", "mine")
    found = read_whole(str(path))
    assert found is not None
    path.unlink()
    path.symlink_to(tmp_path / "outside.txt")
    with pytest.raises(ToolError, match="was changed meanwhile"):
        replace_file(str(path), b"x", found[1])
    assert not (tmp_path / "outside.txt").exists()


FLIP = """
import ctypes, sys
one, other = (name.encode() for name in sys.argv[1:])
libc, here, exchange = ctypes.CDLL(None), -100, 2
assert libc.renameat2(here, one, here, other, exchange) == 0
print("ready", flush=True)
while True:
    libc.renameat2(here, one, here, other, exchange)
"""


async def test_t09_no_write_escapes_while_a_folder_flips_to_a_link(
    bench: Any, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = tmp_path / "link"
    link.symlink_to(outside)
    bench.put("folder/a.txt", "")
    argv = [sys.executable, "-c", FLIP, str(bench.path("folder")), str(link)]
    flipping = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    assert flipping.stdout is not None
    await flipping.stdout.readline()
    results = [
        await bench.use("Write", file_path=f"folder/{n}.txt", content="x") for n in range(150)
    ]
    flipping.kill()
    await flipping.wait()
    assert list(outside.iterdir()) == []
    assert any(result.error for result in results)


lines = st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=6)
ends = st.sampled_from(["\n", "\r\n"])


@given(st.text(max_size=40), st.text(min_size=1, max_size=8), st.text(max_size=8), st.data())
def test_a_replacement_is_exact_and_leaves_the_rest(
    before: str, old: str, new: str, data: st.DataObject
) -> None:
    text = before + old + data.draw(st.text(max_size=40))
    if "\r" in text:
        text, old = text.replace("\r", ""), old.replace("\r", "") or "x"
    places = sum(text.startswith(old, n) for n in range(len(text)))
    try:
        result, line, count = replaced(text, old, new, "f")
    except ToolError:
        assert places != 1
        return
    assert places == 1
    start = text.index(old)
    assert (result, count) == (text[:start] + new + text[start + len(old) :], 1)
    assert line == text.count("\n", 0, start) + 1


@given(st.lists(lines, min_size=3, max_size=8), st.integers(0, 7), st.integers(1, 3), ends)
def test_lines_are_replaced_whatever_ends_them(
    rows: list[str], at: int, size: int, end: str
) -> None:
    rows = [f"{n}:{row}" for n, row in enumerate(rows)]
    at = min(at, len(rows) - 1)
    sought = rows[at : at + size]
    text = "".join(row + end for row in rows)
    result, line, _ = replaced(text, "\n".join(sought), "new\nlines", "f")
    expected = [*rows[:at], "new", "lines", *rows[at + size :]]
    assert result == "".join(row + end for row in expected)
    assert line == at + 1


@given(st.text("ab", min_size=1, max_size=3), st.text("ab", max_size=20))
def test_replace_all_is_what_python_does(old: str, text: str) -> None:
    try:
        result, _, count = replaced(text, old, "Z", "f", every=True)
    except ToolError:
        assert old not in text
        return
    assert result == text.replace(old, "Z")
    assert count == text.count(old)


@pytest.mark.parametrize("path", ["", "."])
async def test_a_path_that_means_the_sessions_directory_is_said_to_be_one(
    bench: Any, path: str
) -> None:
    result = await bench.use("Write", file_path=path, content="x")
    assert result.text == f"{bench.cwd} is a directory. LS lists it."
