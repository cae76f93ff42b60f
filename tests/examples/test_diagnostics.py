"""Language servers, real ones, say what they think of an edit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.examples.test_examples import load

from crow.testing import Pilot, call

BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    ("command", "said"),
    [("ruff server", "`os` imported but unused"), ("pyright-langserver --stdio", '"str"')],
)
@pytest.mark.slow
def test_the_model_reads_what_the_server_says_of_its_edit(crow: Pilot, command: str, said: str):
    crow.use(load("diagnostics").Diagnostics(command=f"{BIN}/{command}", wait=60))
    write = call("Write", file_path="a.py", content="import os\n\nsize: int = str(1)\n")
    crow.configure(allow=["Write"])
    crow.run("Write it", write, "I see.")
    crow.sent("The language server says:")
    crow.sent(said)
    crow.sent(f"{crow.cwd / 'a.py'}:")
    crow.prefix_stable()


def test_a_server_that_never_answers_costs_a_moment(crow: Pilot):
    crow.use(load("diagnostics").Diagnostics(command="wc", wait=0.1))
    crow.configure(allow=["Write"])
    crow.run("Write it", call("Write", file_path="a.py", content="import os\n"), "Done.")
    crow.told("Done.")
    crow.sent("The language server says:", times=0)
