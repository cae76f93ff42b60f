"""A real formatter, and the next edit."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.examples.test_examples import load

from crow.testing import Pilot, call

RUFF = str(Path(sys.executable).with_name("ruff"))


def edit(old: str, new: str):
    return call("Edit", file_path="a.py", old_string=old, new_string=new)


def test_the_next_edit_goes_on_with_the_formatted_file(crow: Pilot):
    crow.configure(allow=["Edit", "Write"])
    crow.use(load("format_after_edit").FormatAfterEdit(command=f"{RUFF} format"))
    write = call("Write", file_path="a.py", content="x = {  'a':1 }\n")
    crow.run("Go", write, edit('x = {"a": 1}', "y = ( 2 )"), edit("y = 2", "z = 3"), "Done.")
    assert (crow.cwd / "a.py").read_text() == "z = 3\n"
    crow.sent('+x = {"a": 1}')


def test_what_the_formatter_says_is_told(crow: Pilot):
    crow.configure(allow=["Write"])
    crow.use(load("format_after_edit").FormatAfterEdit(command=f"{RUFF} format"))
    crow.run("Go", call("Write", file_path="a.py", content="x = (\n"), "I see.")
    crow.sent("could not be formatted: error: Failed to parse")


def test_a_file_that_the_model_has_not_read_stays_unknown(crow: Pilot):
    (crow.cwd / "b.py").write_text("b = 1\n")
    crow.configure(allow=["Edit", "Write"])
    crow.use(load("format_after_edit").FormatAfterEdit(command=f"{RUFF} format b.py"))
    write = call("Write", file_path="a.py", content="x  =  1\n")
    other = call("Edit", file_path="b.py", old_string="1", new_string="2")
    crow.run("Go", write, other, "I have to read it first.")
    crow.sent("has not been read in this session")
