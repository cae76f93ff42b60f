"""File tools through an editor: unsaved text counts, stale text does not, the disk is compared."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def editor(bench: Any, buffers: Any) -> Any:
    """The files of the session's client."""
    bench.client.files = buffers
    return buffers


async def test_unsaved_text_is_what_is_read_and_edited(bench: Any, editor: Any) -> None:
    path = bench.put("a.txt", "on disk\n")
    editor.unsaved[str(path)] = "in the editor\n"
    result = await bench.use("Read", file_path="a.txt")
    assert "in the editor" in result.text
    assert "The editor has changes that are not saved" in result.text
    edit = await bench.use("Edit", file_path="a.txt", old_string="in the", new_string="from the")
    assert not edit.error
    assert path.read_text() == "from the editor\n"
    assert editor.written == [str(path)]


async def test_what_the_user_types_after_a_read_is_not_overwritten(bench: Any, editor: Any) -> None:
    path = bench.put("a.txt", "one\n")
    await bench.use("Read", file_path="a.txt")
    editor.unsaved[str(path)] = "one and more\n"
    result = await bench.use("Write", file_path="a.txt", content="x")
    assert "has changed since it was read" in result.text
    assert editor.unsaved == {str(path): "one and more\n"}
    assert path.read_text() == "one\n"


@pytest.mark.rule("no stale buffer", "Zed's buffers go stale")
async def test_a_buffer_that_a_program_left_behind_is_stale(bench: Any, editor: Any) -> None:
    path = bench.put("a.txt", "old\n")
    await bench.use("Read", file_path="a.txt")
    path.write_text("new\n")
    editor.unsaved[str(path)] = "old\n"
    refused = await bench.use("Edit", file_path="a.txt", old_string="new", new_string="newer")
    assert "has changed since it was read" in refused.text
    again = await bench.use("Read", file_path="a.txt")
    assert "new" in again.text
    assert "behind the editor's back" in again.text
    edit = await bench.use("Edit", file_path="a.txt", old_string="new", new_string="newer")
    assert not edit.error
    assert path.read_text() == "newer\n"


async def test_unsaved_changes_are_not_taken_for_stale_when_the_disk_moves(
    bench: Any, editor: Any
) -> None:
    path = bench.put("a.txt", "disk 1\n")
    editor.unsaved[str(path)] = "mine\n"
    await bench.use("Read", file_path="a.txt")
    path.write_text("disk 2\n")
    assert "mine" in (await bench.use("Read", file_path="a.txt")).text


async def test_line_ends_and_mark_that_the_editor_hides_are_kept(bench: Any, editor: Any) -> None:
    path = bench.put("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert "editor" not in (await bench.use("Read", file_path="a.txt")).text
    await bench.use("Edit", file_path="a.txt", old_string="two", new_string="2\n3")
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n3\r\n"


async def test_a_new_file_is_written_through_the_editor(bench: Any, editor: Any) -> None:
    result = await bench.use("Write", file_path="n.txt", content="hi")
    assert result.text == f"Created {bench.path('n.txt')} (1 line)."
    assert editor.written == [str(bench.path("n.txt"))]


async def test_a_file_that_the_editor_did_not_save_is_said_to_be_so(
    bench: Any, editor: Any
) -> None:
    editor.saves = False
    path = bench.put("a.txt", "one\n")
    await bench.use("Read", file_path="a.txt")
    result = await bench.use("Edit", file_path="a.txt", old_string="one", new_string="two")
    assert result.text.endswith("has not saved it to the disk yet.")
    assert path.read_text() == "one\n"
    again = await bench.use("Edit", file_path="a.txt", old_string="two", new_string="three")
    assert not again.error
    assert editor.unsaved[str(path)] == "three\n"


async def test_a_file_that_only_the_editor_has_is_read(bench: Any, editor: Any) -> None:
    editor.unsaved[str(bench.path("draft.txt"))] = "draft\n"
    assert "draft" in (await bench.use("Read", file_path="draft.txt")).text


async def test_an_editor_that_does_not_answer_leaves_it_to_the_disk(
    bench: Any, editor: Any
) -> None:
    editor.is_broken = True
    path = bench.put("a.txt", "one\n")
    await bench.use("Read", file_path="a.txt")
    result = await bench.use("Edit", file_path="a.txt", old_string="one", new_string="two")
    assert not result.error
    assert path.read_text() == "two\n"
    assert not (await bench.use("Write", file_path="deep/new.txt", content="x")).error


async def test_unsaved_changes_that_cannot_be_written_are_not_lost(bench: Any, editor: Any) -> None:
    path = bench.put("a.txt", "one\n")
    editor.unsaved[str(path)] = "mine\n"
    await bench.use("Read", file_path="a.txt")
    editor.refuses_to_write = True
    result = await bench.use("Edit", file_path="a.txt", old_string="mine", new_string="x")
    assert "has unsaved changes in" in result.text
    assert path.read_text() == "one\n"


async def test_text_that_is_not_utf8_is_left_to_the_disk(bench: Any, editor: Any) -> None:
    path = bench.put("a.txt", "café".encode("latin-1"))
    await bench.use("Read", file_path="a.txt")
    await bench.use("Edit", file_path="a.txt", old_string="caf", new_string="Caf")
    assert path.read_bytes() == "Café".encode("latin-1")
    assert editor.written == []


@pytest.mark.parametrize("missing", ["", None])
@pytest.mark.parametrize("is_remote", [False, True])
@pytest.mark.parametrize(
    "tool, args",
    [
        ("Write", {"content": "hello\n"}),
        ("Edit", {"old_string": "", "new_string": "hello\n"}),
    ],
)
async def test_a_new_file_is_made_whatever_the_client_says_of_missing_files(
    bench: Any, editor: Any, tool: str, args: Any, missing: str | None, is_remote: bool
) -> None:
    editor.missing, editor.is_remote = missing, is_remote
    made = await bench.use(tool, file_path="deep/n.txt", **args)
    assert not made.error, made.text
    assert bench.path("deep/n.txt").read_text() == "hello\n"
    assert editor.read_for == []
    path = str(bench.path("deep/n.txt"))
    again = await bench.use("Edit", file_path=path, old_string="hello", new_string="bye")
    assert not again.error, again.text
    assert bench.path("deep/n.txt").read_text() == "bye\n"


@pytest.mark.parametrize("missing", ["", None])
async def test_a_missing_file_is_missing_whatever_the_client_says(
    bench: Any, editor: Any, missing: str | None
) -> None:
    editor.missing = missing
    assert "does not exist" in (await bench.use("Read", file_path="n.txt")).text
    edited = await bench.use("Edit", file_path="n.txt", old_string="a", new_string="b")
    assert "does not exist" in edited.text


async def test_a_client_that_sees_another_disk_does_not_empty_the_files_of_this_one(
    bench: Any, editor: Any
) -> None:
    editor.missing, editor.is_remote = "", True
    path = bench.put("a.txt", "here\n")
    assert "here" in (await bench.use("Read", file_path="a.txt")).text
    edited = await bench.use("Edit", file_path="a.txt", old_string="here", new_string="there")
    assert not edited.error
    assert path.read_text() == "there\n"


async def test_a_draft_that_was_read_can_be_changed_and_is_not_lost(
    bench: Any, editor: Any
) -> None:
    editor.saves = False
    path = str(bench.path("draft.txt"))
    editor.unsaved[path] = "draft\n"
    await bench.use("Read", file_path="draft.txt")
    edited = await bench.use("Edit", file_path="draft.txt", old_string="draft", new_string="text")
    assert not edited.error
    assert editor.unsaved == {path: "text\n"}
    editor.unsaved[path] = "the user went on\n"
    refused = await bench.use("Write", file_path="draft.txt", content="x")
    assert "has changed since it was read" in refused.text
    assert editor.unsaved == {path: "the user went on\n"}


async def test_what_a_client_still_shows_of_a_removed_file_is_not_that_file(
    bench: Any, editor: Any
) -> None:
    path = bench.put("a.txt", "old\n")
    await bench.use("Read", file_path="a.txt")
    path.unlink()
    editor.unsaved[str(path)] = "old\n"
    edited = await bench.use("Edit", file_path="a.txt", old_string="old", new_string="x")
    assert "does not exist" in edited.text
    written = await bench.use("Write", file_path="a.txt", content="new\n")
    assert written.text.startswith("Created")
    assert path.read_text() == "new\n"


async def test_an_empty_file_is_written_through_the_client(bench: Any, editor: Any) -> None:
    path = bench.put("a.txt", "")
    await bench.use("Read", file_path="a.txt")
    assert not (await bench.use("Write", file_path="a.txt", content="x")).error
    assert editor.written == [str(path)]
