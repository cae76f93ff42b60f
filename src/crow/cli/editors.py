"""The editors and the setup that each needs: one table, which `docs/editors.md` shows as well."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from crow.core.support.frozen import frozen

Command = Sequence[str]


@frozen
class Editor:
    """An editor. ``where`` says where the snippet belongs, ``write`` makes it of a command."""

    name: str
    where: str
    language: str
    write: Callable[[Command], str]


def _json(command: Command, **more: Any) -> str:
    server: dict[str, Any] = {**more, "command": command[0], "args": list(command[1:]), "env": {}}
    return json.dumps({"agent_servers": {"Crow": server}}, indent=2, ensure_ascii=False)


def _zed(command: Command) -> str:
    return _json(command, type="custom")


def _quoted(words: Command, separator: str = ", ") -> str:
    """Words as strings, in a notation that Lua and Emacs Lisp read alike."""
    return separator.join(json.dumps(word, ensure_ascii=False) for word in words)


def _codecompanion(command: Command) -> str:
    return f"""\
require("codecompanion").setup({{
  adapters = {{
    acp = {{
      crow = function()
        return require("codecompanion.adapters").extend("opencode", {{
          name = "crow",
          formatted_name = "Crow",
          commands = {{ default = {{ {_quoted(command)} }} }},
        }})
      end,
    }},
  }},
  interactions = {{ chat = {{ adapter = "crow" }} }},
}})"""


def _avante(command: Command) -> str:
    return f"""\
require("avante").setup({{
  provider = "crow",
  acp_providers = {{
    crow = {{
      command = {_quoted(command[:1])},
      args = {{ {_quoted(command[1:])} }},
      env = vim.fn.environ(),
    }},
  }},
}})"""


def _agent_shell(command: Command) -> str:
    return f"""\
(with-eval-after-load 'agent-shell
  (add-to-list
   'agent-shell-agent-configs
   (agent-shell-make-agent-config
    :identifier 'crow
    :mode-line-name "Crow"
    :buffer-name "Crow"
    :shell-prompt "Crow> "
    :shell-prompt-regexp "Crow> "
    :client-maker
    (lambda (buffer)
      (acp-make-client :command {_quoted(command[:1])}
                       :command-params '({_quoted(command[1:], " ")})
                       :context-buffer buffer)))))"""


def _toad(command: Command) -> str:
    return f"toad acp {shlex.quote(shlex.join(command))} . --title Crow"


EDITORS: Mapping[str, Editor] = MappingProxyType(
    {
        "zed": Editor("Zed", "~/.config/zed/settings.json", "json", _zed),
        "jetbrains": Editor("JetBrains IDEs", "~/.jetbrains/acp.json", "json", _json),
        "neovim": Editor("Neovim with CodeCompanion", "init.lua", "lua", _codecompanion),
        "avante": Editor("Neovim with avante.nvim", "init.lua", "lua", _avante),
        "emacs": Editor("Emacs with agent-shell", "init.el", "elisp", _agent_shell),
        "toad": Editor("Toad", "a terminal, in the project's directory", "sh", _toad),
    }
)


def snippet(name: str, command: Command) -> str:
    """What makes an editor start ``command``, the program of which is an absolute path."""
    return EDITORS[name].write([*command, "acp"])
