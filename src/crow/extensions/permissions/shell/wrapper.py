"""Commands that run other commands: which one, and whether it is as if it stood alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import basename

from crow.dataclasses import frozen
from crow.extensions.permissions.programs.sed import is_plain
from crow.extensions.permissions.shell.script import Word

SHELLS = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash"}
)
INTERPRETERS = re.compile(
    r"(?:python|pypy|perl|ruby|node|deno|bun|php|lua|tclsh|osascript|pwsh|[gmn]?awk|expect|Rscript)[\d.]*"
)
EXACT = frozenset({"watch", "setsid", "ionice", "flock"})
LOOSE = frozenset(
    {"strace", "ltrace", "unbuffer", "busybox", "toybox", "chroot", "unshare", "nsenter", "runuser"}
    | {"su", "script", "parallel", "rlwrap", "firejail", "bwrap", "systemd-run", "valgrind", "gdb"}
    | {"dbus-run-session", "xvfb-run", "faketime", "proot", "perf", "setpriv", "capsh", "prlimit"}
    | {"numactl", "cgexec", "sg", "torsocks", "proxychains", "start-stop-daemon", "hyperfine"}
    | {"caffeinate", "chpst", "entr", "fd", "fdfind", "doas", "chrt", "taskset", "run-parts", "at"}
    | {"batch", "coproc", "ssh", "expect", "unshare", "fakeroot", "linux32", "linux64", "setarch"}
    | {"catchsegv", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "tmux", "screen", "script"}
    | {"pkexec", "gosu", "su-exec", "tini", "dumb-init", "sshpass", "xvfb", "ld.so", "apptainer"}
)
CALLING_BACK = frozenset(
    {"trap", "mapfile", "readarray", "compgen", "complete", "alias", "bind", "enable"}
)
RUNS_COMMANDS = frozenset({"rebase", "submodule", "bisect", "filter-branch"})
RUNNERS: dict[str, frozenset[str]] = {
    "npx": frozenset(),
    "bunx": frozenset(),
    "uvx": frozenset(),
    "dotenv": frozenset(),
    "npm": frozenset({"exec", "x"}),
    "pnpm": frozenset({"exec", "dlx"}),
    "yarn": frozenset({"exec", "dlx"}),
    "bun": frozenset({"x"}),
    "uv": frozenset({"run", "x"}),
    "poetry": frozenset({"run"}),
    "pipenv": frozenset({"run"}),
    "pdm": frozenset({"run"}),
    "hatch": frozenset({"run"}),
    "rye": frozenset({"run"}),
    "pipx": frozenset({"run"}),
    "conda": frozenset({"run"}),
    "bundle": frozenset({"exec"}),
    "docker": frozenset({"run", "exec"}),
    "podman": frozenset({"run", "exec"}),
    "kubectl": frozenset({"exec", "run"}),
    "mise": frozenset({"exec", "x"}),
    "asdf": frozenset({"exec"}),
    "direnv": frozenset({"exec"}),
    "devbox": frozenset({"run"}),
    "nix": frozenset({"run", "shell", "develop"}),
    "nix-shell": frozenset(),
    "op": frozenset({"run"}),
    "aws-vault": frozenset({"exec"}),
    "ip": frozenset({"exec"}),
    "git": RUNS_COMMANDS,
}
DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")
SED_RUNS = re.compile(r"(?:^(?:-\w*?e)?|[;{}\n\d$/!IM])\s*e\s*([^\n]*)")
SED_RUNS_LINES = re.compile(r"s([^\w\s\\]).*\1.*\1[gpiIMm0-9]*e")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@frozen
class Options:
    """The options of a wrapper: those that take a value, and those that do not."""

    valued: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    attached: str = ""  # short options whose value may be glued to them
    operands: re.Pattern[str] | None = None  # one operand before the command


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


STRIPPED = {
    "timeout": Options(
        _set("-k --kill-after -s --signal"),
        _set("--foreground --preserve-status -v --verbose"),
        "ks",
        DURATION,
    ),
    "time": Options(flags=_set("-p")),
    "nice": Options(_set("-n --adjustment"), attached="n"),
    "nohup": Options(),
    "stdbuf": Options(_set("-i -o -e --input --output --error"), attached="ioe"),
    "command": Options(),
    "builtin": Options(),
    "noglob": Options(),
    "xargs": Options(),
}
SEEN_THROUGH = {
    "env": Options(
        _set("-u --unset -C --chdir"),
        _set("-i - --ignore-environment -0 --null -v --debug"),
        "uC",
    ),
    "exec": Options(_set("-a"), _set("-c -l -cl")),
    "command": Options(flags=_set("-p")),
    "sudo": Options(
        _set("-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir"),
        _set("-A -b -E -e -H -i -K -k -n -P -S -s -V -v --preserve-env --login --shell"),
        "ugCp",
    ),
    "setsid": Options(flags=_set("-c -f -w --ctty --fork --wait")),
    "ionice": Options(_set("-c -n -p --class --classdata"), _set("-t --ignore"), "cn"),
    "flock": Options(
        _set("-w -E --timeout --conflict-exit-code"),
        _set("-s -x -e -u -n -o -F -v --shared --exclusive --nonblock --verbose"),
        "w",
        re.compile(r".+"),
    ),
    "watch": Options(
        _set("-n --interval -q"), _set("-b -c -d -e -g -p -t -x --color --exec --no-title"), "n"
    ),
    "xargs": Options(
        _set("-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs --max-lines"),
        _set("-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive --exit"),
        "dEILnPs",
    ),
}


@frozen
class Unwrapped:
    """The command that a wrapper runs.

    ``words`` is the inner command. ``plain`` wrappers change nothing about what is allowed.
    ``vague`` marks a guess. ``open`` commands get more words from elsewhere.
    """

    words: tuple[Word, ...]
    plain: bool = False
    vague: bool = False
    open: bool = False


def program(word: Word) -> str | None:
    """A program's name without its directory."""
    text = word.text
    return text.rpartition("/")[2] or text if text else None


def is_fixed(name: Word) -> bool:
    """Whether the name of a program is what it will be."""
    if name.text in {"[", "[["}:
        return True
    known = name.text is not None and name.text != "!"
    return known and not name.globbed and not name.bare.startswith("~")


def unwrap(words: Sequence[Word]) -> list[Unwrapped]:
    """The commands that a command runs; none where it is no wrapper."""
    name = words[0].text if words else None
    if name is None or (name == "command" and is_lookup(words)):
        return []
    if name in STRIPPED:
        start = _skip(words, STRIPPED[name])
        if start is not None and start < len(words):
            return [Unwrapped(tuple(words[start:]), plain=True, open=name == "xargs")]
    return _seen_through(words, basename(name))


def _seen_through(words: Sequence[Word], name: str) -> list[Unwrapped]:
    if name == "find":
        return _found(words)
    options = SEEN_THROUGH.get(name) or STRIPPED.get(name)
    if options is not None:
        start = _skip(words, options)
        while start is not None and start < len(words) and name in {"env", "sudo"}:
            text = words[start].shape
            if not VARIABLE.match(text):
                break
            start += 1
        if start is not None and start < len(words):
            return [Unwrapped(tuple(words[start:]), open=name == "xargs")]
    starts = range(1, min(len(words), 12))
    if options is not None or name in LOOSE:
        return [Unwrapped(tuple(words[i:]), vague=True) for i in starts]
    if _is_runner(words, name):
        return [Unwrapped(tuple(words[i:]), vague=True) for i in starts if is_fixed(words[i])]
    return []


def is_lookup(words: Sequence[Word]) -> bool:
    """``command -v name``, which only says what it would run."""
    return len(words) > 1 and words[1].text in {"-v", "-V"}


def _is_runner(words: Sequence[Word], name: str) -> bool:
    """Whether it is a tool that runs programs, given the sub-command that does so."""
    if name not in RUNNERS:
        return False
    wanted = RUNNERS[name]
    return not wanted or any(word.text in wanted for word in words[1:5])


def _found(words: Sequence[Word]) -> list[Unwrapped]:
    found: list[Unwrapped] = []
    for index, word in enumerate(words):
        if word.text in {"-exec", "-execdir", "-ok", "-okdir"} and index + 1 < len(words):
            found.append(Unwrapped(tuple(words[index + 1 :]), open=True))
    return found


def _skip(words: Sequence[Word], options: Options) -> int | None:
    """Where the inner command begins; None where an option is not known."""
    index, wants_operand, ended = 1, options.operands is not None, False
    while index < len(words):
        text = words[index].text
        if not ended and text == "--":
            ended, step = True, 1
        elif not ended and text is not None and _is_option(text, options):
            step = _option(text, options)
        elif wants_operand:
            wants_operand = False
            step = 1 if options.operands and options.operands.fullmatch(text or "") else None
        else:
            return index
        if step is None or any(w.text is None or w.globbed for w in words[index:][:step]):
            return None
        index += step
    return index


def _is_option(text: str, options: Options) -> bool:
    return text.startswith("-") and (text != "-" or "-" in options.flags)


def _option(text: str, options: Options) -> int | None:
    if text in options.valued:
        return 2
    if text in options.flags or re.fullmatch(r"-\d+", text):
        return 1
    if text.startswith("--"):
        return 1 if "=" in text and text.split("=", maxsplit=1)[0] in options.valued else None
    if text[1] in options.attached and len(text) > 2:
        return 1
    clustered = all(f"-{letter}" in options.flags for letter in text[1:])
    return 1 if clustered else None


def shell_texts(words: Sequence[Word]) -> list[str | None]:
    """Texts that a command has a shell evaluate; None stands for one that is not known."""
    name = program(words[0]) if words else None
    if name is None:
        return []
    texts = [word.text for word in words[1:]]
    if name in SHELLS or name in {"su", "script", "runuser", "flock", "sg"}:
        return _after(texts, "c")
    if name in {"eval", "watch", "ssh", "parallel", "batch"}:
        plain = [text for text in texts if text is None or not text.startswith("-")]
        return [None if None in plain else " ".join(text or "" for text in plain)] if plain else []
    if name == "env":
        return _after(texts, "S") + [
            text.split("=", 1)[1] for text in texts if text and text.startswith("--split-string=")
        ]
    if name in CALLING_BACK:
        return [text.split("=", 1)[-1] if text and name == "alias" else text for text in texts]
    return _hooked(name, texts)


def _hooked(name: str, texts: Sequence[str | None]) -> list[str | None]:
    """Texts that a program other than a shell has one evaluate."""
    if name == "sed":
        odd = [text for text in texts if text is not None and not is_plain(text)]
        found = [one or None for text in odd for one in SED_RUNS.findall(text)]
        return found + [None for text in odd if SED_RUNS_LINES.search(text)]
    if name == "git" and "grep" in texts:
        return [one[2:] for one in texts if one and one.startswith("-O") and one != "-O"]
    if name == "nix-shell" or (name == "git" and not RUNS_COMMANDS.isdisjoint(texts)):
        return [text for text in texts if text is not None and " " in text]
    return []


def _after(texts: Sequence[str | None], letter: str) -> list[str | None]:
    """The text after a short option, in the same word or the next."""
    found: list[str | None] = []
    for index, text in enumerate(texts):
        if text and text.startswith("-") and not text.startswith("--") and letter in text:
            rest = text[text.index(letter) + 1 :]
            found.extend([rest] if rest and letter == "S" else texts[index + 1 : index + 2])
        elif text in {"--command", "--split-string"}:
            found.extend(texts[index + 1 : index + 2])
    return found
