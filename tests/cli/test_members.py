"""Members by which extensions say something of themselves, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Crow
from tests.files import write

OPTION = """
from dataclasses import dataclass; from functools import cached_property


@dataclass
class Notes:
    {}

    def before_run(self): ...
"""


async def line_of(crow: Crow, home: Path, member: str) -> str:
    """What is said of an extension with such a member; everything else goes on."""
    write(home / ".crow/extensions/notes.py", OPTION.format(member))
    ended = await crow("run", "Run echo hi")
    assert ended.status == 0, ended.err
    assert "I call Bash" in ended.out
    return ended.err


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("option", "what"),
    [
        ("warnings: bool = True", "read by Crow as a list, and is True"),
        ("modes: str = 'fast'", "read by Crow as a list, and is 'fast'"),
        ("warnings: None = None", "read by Crow as a list, and is None"),
        ("choices: int = 3", "read by Crow as a table, and is 3"),
        ("serves_mcp: str = 'no'", "read by Crow as true or false, and is 'no'"),
        ("hides: bool = True", "called by Crow, and is True"),
        ("settle: float = 1.5", "called by Crow, and is 1.5"),
        ("styles: bool = True", "read by Crow as a list, and is True"),
        ("arrive: int = 9", "called by Crow, and is 9"),
        ("no_such_command: bool = False", "called by Crow, and is False"),
    ],
)
async def test_an_option_that_is_called_like_one_breaks_the_extension_and_nothing_else(
    crow: Crow, home: Path, option: str, what: str
) -> None:
    said = await line_of(crow, home, option)
    name = option.partition(":")[0]
    assert f"Notes.{name} is {what}: call it something else" in said
    assert "notes.py:5)" in said


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("method", "what"),
    [
        ("def modes(self): ...", "modes is read by Crow, and is a method: put @property above it"),
        (
            "@property\n    def mentions(self): ...",
            "mentions is called by Crow, and is a property: make it a method",
        ),
        (
            "def brings_tools(self): ...",
            "brings_tools is called by Crow with (session), and takes ()",
        ),
        (
            "def rule_applies(self, rule, call): ...",
            "rule_applies is called by Crow with (rule, tool, args, cwd), and takes (rule, call)",
        ),
        (
            "async def mentions(self, session): ...",
            "mentions is not awaited by Crow, and is async: make it a plain def",
        ),
    ],
)
async def test_a_method_that_cannot_be_called_as_it_is_breaks_the_extension_and_nothing_else(
    crow: Crow, home: Path, method: str, what: str
) -> None:
    said = await line_of(crow, home, method)
    assert f"Notes.{what}" in said
    assert "notes.py:7)" in said


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    "member",
    [
        "@property\n    def modes(self): return []",
        "def brings_tools(self, session, *more, further=1): return False",
        "async def arrive(self, *given): ...",
        "def configure(self): ...",
        "mcp_servers: None = None",
        "hides: None = None",
        "order: str = 'asc'",
        "inherited: int = 1",
        "def inherited(self): ...",
        "def configure(self, level): ...",
        "def terminal_status(self): ...",
        "@cached_property\n    def styles(self): raise RuntimeError('too early')",
    ],
)
async def test_a_member_that_fits_is_no_mistake(crow: Crow, home: Path, member: str) -> None:
    assert "notes" not in await line_of(crow, home, member)


GUARD = "class Guard:\n    def before_tool(self): ...\n"
LIFESPAN = "lifespan(self, host):\n        yield\n"


@pytest.mark.parametrize(
    "text",
    [
        f"class Pool:\n    async def {LIFESPAN}",
        "async def lifespan(agent):\n    yield\n",
        f"class Pool:\n    def __init__(self, url): ...\n    async def {LIFESPAN}{GUARD}",
    ],
    ids=["a class", "a file", "a helper"],
)
async def test_a_lifespan_is_an_extension_where_nothing_else_is_one(
    crow: Crow, home: Path, text: str
) -> None:
    write(home / ".crow/extensions/notes.py", text)
    listed = await crow("ext", "list")
    [line] = [each for each in listed.out.splitlines() if " notes " in each]
    assert line.startswith("in use"), line


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
    text = "import warnings\norder = 3\nmcp_servers = None\n\ndef before_run():\n    return 'context'\n"
    write(home / ".crow/extensions/notes.py", text)
    ended = await crow("run", "Run echo hi")
    assert (ended.status, "notes" in ended.err) == (0, False), ended.err
