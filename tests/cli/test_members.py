"""An option that is called like a member by which extensions say something of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Crow
from tests.files import write

OPTION = """
from dataclasses import dataclass


@dataclass
class Notes:
    {}

    def before_run(self): ...
"""


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("option", "what"),
    [
        ("warnings: bool = True", "a list, and is True"),
        ("modes: str = 'fast'", "a list, and is 'fast'"),
        ("warnings: None = None", "a list, and is None"),
        ("choices: int = 3", "a table, and is 3"),
        ("order: str = 'newest'", "a number, and is 'newest'"),
        ("hides: bool = True", "a method, and is True"),
        ("arrive: int = 9", "a method, and is 9"),
        ("no_such_command: bool = False", "a method, and is False"),
    ],
)
async def test_it_breaks_the_extension_and_nothing_else(
    crow: Crow, home: Path, option: str, what: str
) -> None:
    write(home / ".crow/extensions/notes.py", OPTION.format(option))
    ended = await crow("run", "Run echo hi")
    assert ended.status == 0, ended.err
    assert "I call Bash" in ended.out
    name = option.partition(":")[0]
    assert f"Notes.{name} is read by Crow as {what}: call it something else" in ended.err
    assert "notes.py:5)" in ended.err


async def test_a_package_whose_order_is_no_number_stops_no_other(
    crow: Crow, tmp_path: Path
) -> None:
    write(tmp_path / "things.py", OPTION.format("order: str = 'newest'"))
    entry = "[crow.extensions]\nnotes = things:Notes\n"
    write(tmp_path / "things-1.0.dist-info/entry_points.txt", entry)
    crow.env["PYTHONPATH"] = str(tmp_path)
    ended = await crow("run", "Run echo hi")
    assert ended.status == 0, ended.err
    assert "the extension notes (things) is broken: Notes.order is read by Crow as" in ended.err


async def test_what_is_right_counts_and_what_a_module_imports_does_not(
    crow: Crow, home: Path
) -> None:
    text = "import warnings\norder = 3\nhides = None\n\ndef before_run():\n    return 'context'\n"
    write(home / ".crow/extensions/notes.py", text)
    ended = await crow("run", "Run echo hi")
    assert (ended.status, "notes" in ended.err) == (0, False), ended.err
