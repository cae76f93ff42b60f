"""What extensions add to the screen, by the example of the documentation; no other face minds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, calls
from tests.cli.screens import Tmux, needs_tmux

from crow.testing.endpoint import Endpoint, answer

PAGE = (Path(__file__).parents[2] / "docs/terminal.md").read_text("utf-8")
WEIGH = calls(("weigh", {"name": "README.md"}))


@pytest.fixture
def scales(tmp_path: Path) -> str:
    """The extension of the page."""
    found = re.search(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    path = tmp_path / "scales.py"
    path.write_text(found[1], "utf-8")
    return str(path)


@needs_tmux
async def test_an_extension_has_a_text_lines_a_card_keys_and_a_command_with_completion(
    crow: Crow, endpoint: Endpoint, tmux: Tmux, scales: str
) -> None:
    endpoint.play(WEIGH, answer("Done."))
    await tmux.start(crow, "--extension", scales, "--allow", "weigh")
    await tmux.until("⚖ ready", "0 weighed")
    await tmux.keys("C-b")
    await tmux.until("0 weighed", gone="⚖ ready")
    await tmux.type("Weigh it")
    await tmux.keys("Enter")
    await tmux.until("│ ⚖ README.md: 12 grams", "│ (on the kitchen table)", "Done.", "1 weighed")
    await tmux.keys("M-w")
    await tmux.until("0 weighed")
    await tmux.type("/scales kilo")
    await tmux.until("  kilograms")
    await tmux.keys("Tab", "Enter")
    await tmux.until("The scales show kilograms.")


@needs_tmux
async def test_one_that_fails_is_named_once_and_the_talk_goes_on(
    crow: Crow, endpoint: Endpoint, tmux: Tmux, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text(
        "def terminal_status(session):\n    raise ValueError('no status')\n\n\n"
        "def terminal_widget(session):\n    return 'a\\x1b[2Jb'\n\n\n"
        "terminal_keys = {'x': print, 'ctrl-o': print}\n\n\n"
        "def before_run():\n    pass\n",
        "utf-8",
    )
    endpoint.play(answer("Hello."))
    await tmux.start(crow, "--extension", str(tmp_path / "broken.py"))
    await tmux.until("its terminal_status failed: ValueError: no status", "'x' is no key", "ab")
    await tmux.type("Hi")
    await tmux.keys("Enter")
    screen = await tmux.until("Hello.")
    assert screen.count("its terminal_status failed") == 1


@pytest.mark.slow
async def test_the_same_extension_is_harmless_in_lines(
    crow: Crow, endpoint: Endpoint, scales: str
) -> None:
    endpoint.play(WEIGH, answer("Done."))
    ended = await crow("run", "--extension", scales, "--allow", "weigh", "Weigh it")
    assert (ended.status, ended.out) == (0, "Done.\n")
    said = [line for line in ended.err.splitlines() if "blocked everything" not in line]
    assert said == ["● weigh", "  └ README.md: 12 grams"]
