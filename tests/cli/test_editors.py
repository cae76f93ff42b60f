"""``crow acp --print-config`` and the page about editors, which show the same."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow

from crow.cli.editors import EDITORS, snippet
from crow.testing import FakeEditor

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/editors.md").read_text("utf-8")
PROGRAM = str(Path(sys.executable).with_name("crow"))


@pytest.mark.parametrize("name", EDITORS)
def test_the_page_shows_what_the_command_prints(name: str) -> None:
    editor = EDITORS[name]
    shown = f"```{editor.language}\n{snippet(name, ['/home/ada/.local/bin/crow'])}\n```"
    assert shown in PAGE


def test_the_page_names_every_editor_that_the_command_knows() -> None:
    (named,) = re.findall(r"--print-config zed +# or: (.*)", PAGE)
    assert {"zed", *named.split(", ")} == set(EDITORS)


@pytest.mark.parametrize("name", EDITORS)
async def test_what_is_printed_names_the_command_by_its_whole_path(crow: Crow, name: str) -> None:
    ended = await crow("acp", "--print-config", name)
    assert ended.status == 0
    assert PROGRAM in ended.out
    assert EDITORS[name].name in ended.err


@pytest.mark.variants(1)
@pytest.mark.parametrize("name", ["zed", "jetbrains"])
async def test_the_printed_command_starts_an_agent(crow: Crow, name: str) -> None:
    ended = await crow("acp", "--print-config", name)
    server: dict[str, Any] = json.loads(ended.out)["agent_servers"]["Crow"]
    editor = FakeEditor()
    async with editor.spawned(
        server["command"], *server["args"], cwd=crow.cwd, env={"PATH": os.defpath}
    ):
        session = await editor.new_session(crow.cwd)
        assert (await editor.prompt(session, "hello")).stop_reason == "end_turn"


@pytest.mark.parametrize("name", EDITORS)
def test_a_path_with_blanks_and_marks_stays_one_word(name: str) -> None:
    awkward = '/opt/my "tools"/crow'
    written = snippet(name, [awkward])
    if EDITORS[name].language == "sh":
        assert shlex.split(shlex.split(written)[2]) == [awkward, "acp"]
    else:
        assert json.dumps(awkward) in written


AWKWARD = ['/opt/my "tools"/$x\\y ä/crow', "--model", "o'llama/qwen3"]
"""A command that is quoted wherever something could be taken for something else."""
LUA = """
local heard
local adapters = { extend = function(_, fields) return fields end }
package.preload["codecompanion.adapters"] = function() return adapters end
package.preload["codecompanion"] = function()
  return { setup = function(opts) heard = opts.adapters.acp.crow().commands.default end }
end
package.preload["avante"] = function()
  return { setup = function(opts)
    local crow = opts.acp_providers[opts.provider]
    assert(crow.env.SNIPPET == vim.env.SNIPPET, "avante gives an agent PATH, and what is named")
    heard = { crow.command, unpack(crow.args) }
  end }
end
dofile(vim.env.SNIPPET)
io.stdout:write(vim.json.encode(heard))
"""
PLUGIN = """
(defvar agent-shell-agent-configs nil)
(defun agent-shell-make-agent-config (&rest fields) fields)
(defun acp-make-client (&rest fields)
  (cons (plist-get fields :command) (plist-get fields :command-params)))
(provide 'agent-shell)
"""
ELISP = """
(require 'json)
(add-to-list 'load-path (file-name-directory load-file-name))
(load (getenv "SNIPPET") nil t t)
(require 'agent-shell)
(let ((maker (plist-get (car agent-shell-agent-configs) :client-maker)))
  (princ (json-encode (funcall maker (current-buffer)))))
"""
READERS = {
    "neovim": ("nvim", ["--headless", "-u", "NONE", "-c", "luafile {}", "-c", "qa!"], LUA),
    "avante": ("nvim", ["--headless", "-u", "NONE", "-c", "luafile {}", "-c", "qa!"], LUA),
    "emacs": ("emacs", ["--batch", "-Q", "-l", "{}"], ELISP),
}


@pytest.mark.parametrize("name", READERS)
def test_the_editor_itself_reads_the_command_out_of_its_snippet(name: str, tmp_path: Path) -> None:
    """The interpreter is the editor's; what its plugin would be given is printed."""
    program, options, script = READERS[name]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: its snippet is not evaluated")
    check, given = tmp_path / "check", tmp_path / "snippet"
    check.write_text(script, "utf-8")
    (tmp_path / "agent-shell.el").write_text(PLUGIN, "utf-8")
    given.write_text(snippet(name, AWKWARD), "utf-8")
    read = subprocess.run(
        [program, *(option.format(check) for option in options)],
        env={**os.environ, "SNIPPET": str(given), "LANG": "C.UTF-8"},
        capture_output=True,
        timeout=40,
        check=False,
    )
    assert json.loads(read.stdout.decode() or read.stderr.decode()) == [*AWKWARD, "acp"]


def test_a_shell_reads_the_command_out_of_toads_line() -> None:
    script = f'toad() {{ printf "%s\\n" "$2"; }}; {snippet("toad", AWKWARD)}'
    said = subprocess.run(["sh", "-c", script], capture_output=True, check=True, text=True)
    assert shlex.split(said.stdout) == [*AWKWARD, "acp"]


async def test_an_editor_that_is_not_known_is_refused_with_the_ones_that_are(crow: Crow) -> None:
    ended = await crow("acp", "--print-config", "zedd")
    assert ended.status == 2
    assert "did you mean 'zed'?" in ended.complaint
    assert "jetbrains" in ended.complaint
