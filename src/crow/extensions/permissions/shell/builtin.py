"""Built-ins of the shell that change what later commands mean, or that evaluate text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crow.extensions.permissions.programs.readonly import reads
from crow.extensions.permissions.shell.script import Assignment, Word

EVALUATING = frozenset(
    {"eval", "source", ".", "exec", "export", "declare", "typeset", "local", "readonly", "unset"}
    | {"set", "shopt", "alias", "unalias", "hash", "trap", "enable", "read", "mapfile", "readarray"}
    | {"let", "getopts", "complete", "compgen", "compopt", "bind", "history", "fc", "coproc"}
    | {"function", "select", "caller", "umask", "ulimit", "pushd", "popd", "dirs", "disown"}
    | {"suspend", "logout", "jobs", "bg", "fg", "return", "integer", "nameref"}
    | {"repeat", "foreach", "zmodload", "autoload", "functions", "emulate", "setopt"}
    | {"unsetopt", "((", "shift", "times"}
)
HARMLESS = re.compile(r"-[eux]+|-o|-eo|-euo|-euxo|-uo|pipefail|errexit|nounset|xtrace")
SAFE_NAMES = frozenset(
    "ANTHROPIC_API_KEY APP_ENV ASPNETCORE_ENVIRONMENT BLOCKSIZE BLOCK_SIZE CARGO_TERM_COLOR "
    "CGO_ENABLED CHARSET CI CLICOLOR CLICOLOR_FORCE COLORTERM COLUMNS DEBIAN_FRONTEND "
    "DO_NOT_TRACK FORCE_COLOR GCC_COLORS GO111MODULE GOARCH GOEXPERIMENT GOOS GREP_COLOR "
    "GREP_COLORS HOMEBREW_NO_AUTO_UPDATE LANG LANGUAGE LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES "
    "LC_NUMERIC LC_TIME LINES LSCOLORS LS_COLORS MIX_ENV NEXT_TELEMETRY_DISABLED NODE_ENV "
    "NO_COLOR PIP_NO_INPUT PYTEST_DEBUG PYTEST_DISABLE_PLUGIN_AUTOLOAD "
    "PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONIOENCODING PYTHONUNBUFFERED PYTHONUTF8 "
    "RACK_ENV RAILS_ENV RUST_BACKTRACE RUST_LOG SOURCE_DATE_EPOCH TERM TF_IN_AUTOMATION "
    "TIME_STYLE TZ UV_NO_PROGRESS".split()
)
SAFE_VALUE = re.compile(r"[A-Za-z0-9_.,:+@=% *-]*")
SAFE_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
LOOP_NAME = re.compile(r"[a-z][a-z0-9]{0,15}|[a-z]+_(?:file|name|dir|path)")
LOOP_NAMES_REFUSED = frozenset({"path", "cdpath", "fpath", "home", "argv", "status", "prompt"})


def evaluates(words: Sequence[Word]) -> bool:
    """Whether a command is a built-in that changes the shell's state or evaluates text."""
    name = words[0].text
    if name == "set":
        texts = [word.text for word in words[1:]]
        return not texts or not all(text and HARMLESS.fullmatch(text) for text in texts)
    if name in {"printf", "test", "[", "[[", "wait"}:
        return reads(words) is None
    if name == "read":
        return not _reads_a_line(words)
    return name in EVALUATING


def may_hide(words: Sequence[Word]) -> bool:
    """Whether such a built-in could make the shell run what stands nowhere as a command."""
    if words[0].text not in STATE:
        return True
    for word in words[1:]:
        text = word.text
        if text is None or RISKY.search(text) or text.split("=")[0] in HOOKED:
            return True
    return False


STATE = frozenset(
    {"export", "local", "readonly", "read", "unset", "set", "shift", "return", "umask", "pushd"}
    | {"popd", "dirs", "bg", "fg", "times", "ulimit", "disown", "shopt"}
)
HOOKED = frozenset(
    {"BASH_ENV", "ENV", "IFS", "PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND", "SHELLOPTS"}
    | {"--", "expand_aliases", "BASHOPTS", "GLOBIGNORE", "HOME", "PWD", "OLDPWD", "CDPATH"}
    | {"TMPDIR", "USER", "LOGNAME"}
)
RISKY = re.compile(r"[\[\]$`]|^-[a-zA-Z]*i|^(?:LD|DYLD|GIT)_|^BASH_FUNC")


def is_safe(assignment: Assignment) -> bool:
    """Whether a variable before a command cannot change which program runs or what it loads."""
    text = assignment.value.text
    if assignment.odd or text is None or assignment.name not in SAFE_NAMES:
        return False
    if assignment.name == "TZ":
        return SAFE_ZONE.fullmatch(text) is not None
    return SAFE_VALUE.fullmatch(text) is not None


def _reads_a_line(words: Sequence[Word]) -> bool:
    """``read -r line``: into a variable that no program looks at."""
    texts = [word.text for word in words[1:]]
    names = texts[1:] if texts[:1] == ["-r"] else []
    return bool(names) and all(name is not None and is_loop_name(name) for name in names)


def is_own(assignment: Assignment) -> bool:
    """Whether it sets a variable of the script's own, which no program looks at."""
    return is_loop_name(assignment.name) and not assignment.odd and assignment.value.known


def is_loop_name(name: str) -> bool:
    """Whether the variable of a ``for`` is certainly none that programs look at."""
    return LOOP_NAME.fullmatch(name) is not None and name not in LOOP_NAMES_REFUSED
