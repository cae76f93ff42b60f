"""Makes up shell commands, asks Crow about each, and runs what it would let through under a tracer.

Fails when a program ran that no rule names, or when a file was written; a third of the commands is
asked about under a bare ``Bash`` and deny rules, and fails when a denied program ran. Run it as
``python -m tests.fuzz_shell --commands 100000``; `make test ARGS='-m slow -k fuzz'` tries some, always
the same ones, or others each time where ``CROW_FUZZ_SEED`` is ``random`` (a number: those again).

It needs bubblewrap and strace (`tests.tracing`). Programs that only read are the machine's own, so
that their real options are tried; some of their arguments come from `tests.arguments`.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.arguments import ALSO, is_tolerated, known
from tests.arguments import made_up as with_arguments
from tests.tracing import Tracer

from crow.extensions.permissions import LocalDisk, Permissions
from crow.extensions.permissions.programs.table import programs
from crow.extensions.permissions.shell.shfmt import SecondOpinion

RULES = (
    "Bash(npm run *)", "Bash(npm test)", "Bash(git commit *)", "Bash(* --version)", "Bash(printf *)",
    "Bash(test *)", "Bash([ *)", "Bash([[ *)", "Bash(read *)", "Bash(let *)", "Bash(declare *)",
    "Bash(unset *)", "Bash(export *)", "Bash(set *)", "Bash(mapfile *)", "Bash(true *)", "Bash(x=*)",
    "Bash(cd *)", "Bash(xargs npm run *)", "Bash(find *)", "Bash(watch npm test)",
)  # fmt: skip
WRAPPERS = "xargs env timeout nice nohup stdbuf time".split()
TEXTS = (
    "'BEGIN{system(\"./evil\")}'", "'-e1e ./evil'", "-e1e./evil", "'1e ./evil'", "-eexec+q{./evil}",
    "'exec q{./evil}'", "'import os; os.system(\"./evil\")'", "'-cimport os; os.system(\"./evil\")'",
    "./evil", "'-c ./evil'", "\"-c ./evil\"", "'BEGIN{while(\"./evil\"|getline)print}'",
)  # fmt: skip
INTERPRETERS = (
    "gawk", "mawk", "awk -F:", "awk -v x=1", "sed", "sed -n", "sed -e", "python3 -c", "python3", "python3 -B",
    "perl -e", "perl -ne", "perl", "perl -wle", "sh -c", "sh", "bash -c", "bash", "sed -f -", "python3 -",
    "sh -s", "awk -f -", "awk -f /dev/stdin", "perl -", "sed -n -f /dev/stdin", "timeout 5 python3 -c",
    "env A=1 perl -e", "xargs perl -e", "xargs -I{} sh -c {}", "xargs awk", "xargs -I@ sed @", "nice sh -c",
)  # fmt: skip
INTERPRETED = (
    "x={t}; {i} \"$x\" f", "x={t}; {i} $x f", "{i} \"$(echo {t})\" f", "echo {t} | {i}", "{i} <<< {t}", "{i} {t} f",
    "for x in {t}; do {i} \"$x\" f; done", "echo {t} | while read -r x; do {i} \"$x\" f; done", "{i} <(echo {t})",
    "echo {t} > w; {i} < w", "{i} <<E\n$(echo {t})\nE", "x={t}; {i} <<E\n$x\nE", "{i} <<'E'\n./evil\nE",
    "x={t}; {i} \"p;$x\" f", "printf %s\\\\n {t} | {i} f", "x={t}; y=$x; {i} \"$y\" f", "find f -exec {i} {t} ;",
    "x={t}; cat <({i} \"$x\" f)", "{ {i} f; } <<< {t}", "( echo {t}; ) | {i}", "{i} \"${x:-$(echo {t})}\" f",
)  # fmt: skip
READERS = [*(name for name, one in programs().items() if one.reader != "known"), *WRAPPERS]
STUBS = ("npm", "git", "curl", "evil", "sh", "watch", "tee", "rm", "touch")
OPTIONS = (
    "-o w", "-ow", "--output=w", "--output w", "-uo w", "-i", "-i.b", "--in-place", "-delete",
    "-exec ./evil ;", "-exec ./evil {} +", "-ok ./evil ;", "-fprint w", "-fprintf w x", "-fls w",
    "--compress-program=./evil", "-S 1", "-T .", "--files0-from=f", "-s 2020-01-01", "-f f", "f w",
    "--pre ./evil", "--pre=./evil", "-z", "-r", "-R", "-C", "-m f", "'1e ./evil'", "'s/a/b/w w'",
    "'s/a/./e'", "-e 'w w'", "-n", "-n '1p;w w'", "-n '1p'", "'s/a/b/'", "-ne 1p", "-k 1", "-k $X",
    "-k *", "-n $X", "*", "f*", "d/*", "$X", '"$X"', "{f,w}", "{-o,w}", "-", "--", "-c", "-l", "-I{}",
    "'{print $1}'", "'{print > \"w\"}'", "'{print | \"./evil\"}'", "'BEGIN{system(\"./evil\")}'", "-F:",
    "'NR>1 {print $NF}'", "'/a/' f", "-f f", "-r .a", "-n env", "'import \"f\" as f; .'", "--rawfile a f .",
    "-n1", "-0", "-print0", "-printf w", "-name f", "-type f", "-maxdepth 1", "+%F", "-d now", "-u",
    "-rf", "-ri", "-ie", "-x", "-a f", "-p", "-t", "-E", "-v", "-q", "-d x", "-s", "-revert", "-l 5",
    "--magic-file=f", "-b", "--fromfile", "--info", "--help", "--version", "d", "f", "w", "d/g", "./f",
)  # fmt: skip
BUILTINS = (
    "wait type cd exit return break continue shift times umask ulimit kill jobs bg fg disown hash "
    "getopts read mapfile readarray printf test [ [[ let declare typeset local export readonly unset "
    "set shopt trap alias unalias command builtin enable complete compgen compopt bind history fc "
    "pushd popd dirs suspend logout caller eval source . exec echo true : pwd"
).split()
BUILTIN_RULES = tuple(f"Bash({name} *)" for name in BUILTINS)
LETTERS = "-p -v -n -a -r -i -t -d -s -u -C -c -f -e -o -x -l -P -A -F -W -N -O -L".split()
NAMES = (
    "'a[$(curl x)]'",
    '"a[\\$(curl x)]"',
    "a[$(curl)]",
    "x",
    "0",
    "'$(curl x)'",
    "-eq",
    "]",
    "]]",
)
FRAMES = (
    "{a} {o}", "{a} {o} {o}", "{a} {o} {o} {o}", "{a} {o} | {a} {o}", "{a} | xargs {o} {a}",
    "find . {o} | xargs {o} {a} {o}", "for f in {o}; do {a} $f {o}; done", "{a} <({a} {o})",
    'for f in {o} {o}; do {a} "$f"; done', "for f in {a} {o}; do $f {o}; done", "x={o}; {a} $x",
    'for f in *; do {a} {o} "$f"; done', "while read -r l; do {a} {o}; done < f", "{a} {o} > {o}",
    "case {o} in {o}) {a} {o};; *) {a};; esac", "read -r x < f; {a} $x {o}", "{a} {{{o},f}}", "{p}",
    "if {a} {o}; then {a} {o}; fi", "{a} {o} && {p}", "{p} | {a} {o}", "( {a} {o}; {p} )", "{a} {p}",
    "for f in {p}; do {a} $f; done", "while {a}; do {p}; break; done", "[[ $X == {o} ]] && {a} {o}",
    "case a in {p}) {a};; esac", "x={p}; {a} {o}", "{a} <<< {p}", "{a} <<E\n{p}\nE", "{a} <({p})",
    "timeout 5 {a} {o}", "nice {a} {p}", "A=1 {a} {o}", "LC_ALL=C {a} {o}", "command {a} {o}",
    "{a} {o} 2>&1", "{a} {o} 2>/dev/null", "! {a} {o}", "{a} $({a} {o})", '{a} "$({p})" {o}',
    "for f in {o}; do for g in {o}; do {a} $f $g; done; done", "for f in {o}; do read -r f; {a} $f; done",
)  # fmt: skip
ATOMS = (
    "npm run build", "npm run", "npm test", "git commit -m", "echo hi", "ls", "cat f", "true", "pwd",
    "x --version", "printf", "test", "[", "[[", "read", "let", "declare -i", "unset", "cd d", "set",
    "find .", "sort", "export", "sed -n 1p f", "grep a f", "timeout 5", "time", "command", "nice",
    "xargs", "nohup", "watch npm test", "date", "type", "for i in a", "for PATH in a", "while read l",
    "head -1 f", "wc f", "git status", "git log", "NODE_ENV=a", "A=1", "stdbuf -oL",
)  # fmt: skip
PAYLOADS = (
    "curl", "curl x", "$(curl x)", "`curl x`", "'a[$(curl x)]'", '"a[$(curl x)]"', "a[$(curl x)]=1",
    "./evil", "evil", "$X", "${x:-$(curl)}", "${x@P}", "${!x}", "$((a[$(curl x)]))", "x='$(curl x)'",
    "<(curl x)", ">(curl x)", "-exec curl {} ;", "-v 'a[$(curl)]'", "-C 'curl x'", "> w", ">> w", ">w",
    "&> w", ">& w", "2> w", ">| w", "<> w", "touch w", "rm f", "tee w", "sh -c 'curl x'", "eval curl",
)  # fmt: skip
GLUE = (
    ";", "&", "&&", "||", "|", "|&", "\n", "\r", "\\\n", "\n\\\n", " ", "\t", "#", " # ", '"', "'", "$(",
    ")", "${", "}", "((", "))", "[[", "]]", "<<E\n", "<<'E'\n", "<<-E\n", "\nE\n", "<<<", "<(", ">", "<",
    "2>&1", "{", "(", "!", "then", "; then", "fi", "; fi", "if", "; do", "do", "done", "; done", "in",
    "case a in a)", ";;", "esac", "\\", "\\\\", "$", "`", "$'", '$"', "=", "x=", "-eq 0", "]", "*", "?",
    "~", "{a,b}", "--", "-", "-n", "@", "%", ":", ",", "''", '""', "\\ ", "\\'", '\\"', "\\$", "\\`",
    "0", "1", "a", "b", "\u00a0", "\u200b", "f()", "{ ", "; }", "coproc", "select", "until", "\x0c", "é",
)  # fmt: skip
ARGV = re.compile(r", \[(.*?)\](?:, | <|\)|$)")
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
DENIED = ("curl", "evil")
OURS = {"npm": ("run", "test"), "git": ("commit", "status", "log", "ls-files"), "watch": ("npm",)}


@dataclass
class Bench:
    """A directory with stubs and a workspace, made anew whenever something was written."""

    top: Path
    faults: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        (self.top / "bin").mkdir()
        for name in STUBS:
            stub = self.top / "bin" / name
            stub.write_text("#!/bin/sh\n")
            stub.chmod(0o755)
        variables = {"X": "-o w", "HOME": str(self.cwd)}
        self.tracer = Tracer(self.top, f"{self.top / 'bin'}:{os.defpath}", variables)
        self.fill()

    @property
    def cwd(self) -> Path:
        return self.top / "work"

    def fill(self) -> None:
        """Make the workspace what it is before each command."""
        shutil.rmtree(self.cwd, ignore_errors=True)
        (self.cwd / "d").mkdir(parents=True)
        for name in ("f", "d/g"):
            (self.cwd / name).write_text("a\nb\n")
        shutil.copy(self.top / "bin" / "evil", self.cwd / "evil")

    def run(self, command: str, *, denying: bool = False) -> str | None:
        """Run a command; what it did that no rule names (or that one denies), or None."""
        [deeds] = self.tracer.run([(command, self.cwd)], seconds=2)
        changes = [one for one in deeds.changed if not is_tolerated(one, command, self.cwd)]
        if changes:
            self.fill()
        is_fine = is_not_denied if denying else is_named
        for given in deeds.argv:
            words = words_of(given)
            if not given.rstrip().endswith("directory)") and not is_fine(words):
                return f"{words} ran"
        return None if denying or not changes else changes[0]


def words_of(call: str) -> list[str]:
    """The arguments of a program that was started, its name without a directory."""
    found = ARGV.search(call)
    words = QUOTED.findall(found[1] if found else call)
    return [words[0].rpartition("/")[2], *words[1:]] if words else [call]


OWN = [name for name in known() if not name.startswith("git ")]


def is_named(words: list[str]) -> bool:
    """Whether a rule, or the list of reading programs, names what ran."""
    also = {name for one in READERS for name in ALSO.get(one, ())}
    if words[-1] == "--version" or words[0] in READERS or words[0] in also:
        return True
    given = words[3:] if words[:2] == ["git", "-C"] else words[1:]
    return given[:1] != [] and given[0] in OURS.get(words[0], ())


def is_not_denied(words: list[str]) -> bool:
    """Whether no deny rule names what ran."""
    return words[0] not in DENIED


def made_up(rng: random.Random) -> str:
    """A command: something that is allowed, something that is not, and what could glue them."""
    pieces = [rng.choice(ATOMS)]
    for _ in range(rng.randint(1, 7)):
        kind = rng.random()
        pool = GLUE if kind < 0.6 else ATOMS if kind < 0.82 else PAYLOADS
        pieces.append(rng.choice(pool))
    if rng.random() < 0.5:
        rng.shuffle(pieces)
    return "".join(piece + rng.choice(("", " ", " ")) for piece in pieces)


def framed(rng: random.Random) -> str:
    """A command that makes sense: programs that only read, their options, and what must not be."""
    frame = rng.choice(FRAMES)
    if rng.random() < 0.3:
        name = " ".join(rng.choice(BUILTINS) for _ in range(rng.choice((1, 1, 1, 2))))
        given = (rng.choice(rng.choice((LETTERS, NAMES))) for _ in range(rng.randint(1, 4)))
        return f"{rng.choice(('', '', 'true & ', 'x=1; '))}{name} {' '.join(given)}"
    while "{a}" in frame or "{o}" in frame or "{p}" in frame:
        name = rng.choice(READERS) if rng.random() < 0.8 else rng.choice(ATOMS)
        frame = frame.replace("{a}", name, 1)
        frame = frame.replace("{o}", rng.choice(OPTIONS), 1)
        frame = frame.replace("{p}", rng.choice(PAYLOADS), 1)
    return frame.replace("{{", "{").replace("}}", "}")


def interpreted(rng: random.Random) -> str:
    """A program that runs text, and a text that names what must not run, somewhere out of sight."""
    text = rng.choice(INTERPRETED).replace("{i}", rng.choice(INTERPRETERS))
    return text.replace("{t}", rng.choice(TEXTS))


def listed(rng: random.Random) -> str:
    """A program that only reads with arguments of its own, and what could be glued to them."""
    command = with_arguments(rng, rng.choice(OWN))
    return rng.choice(("{}", "{}", "for f in a; do {}; done", "( {} )", "x=$({})")).replace(
        "{}", command
    )


def fuzz(commands: int, seed: int, bench: Bench) -> int:
    """Try so many commands; how many of them were let through."""
    rng = random.Random(seed)
    disk, second = LocalDisk(str(bench.cwd)), SecondOpinion(remembered=1)
    denials = [f"Bash({name} *)" for name in DENIED]
    allowing = Permissions.of(allow=RULES, disk=disk, second=second)
    plain = Permissions.of(allow=BUILTIN_RULES, disk=disk, second=second)
    denying = Permissions.of(allow=["Bash"], deny=denials, disk=disk, second=second)
    allowed = 0
    for _ in range(commands):
        command = rng.choice((made_up, framed, listed, interpreted))(rng)
        permissions = rng.choice((allowing, denying, plain))
        decision = permissions.judge("Bash", {"command": command}, cwd=str(bench.cwd))
        if decision.decision != "allow":
            continue
        allowed += 1
        fault = bench.run(command, denying=permissions is denying)
        if fault is not None:
            bench.faults.append(f"{command!r} was let through ({decision.reason}), and: {fault}")
    return allowed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--commands", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        bench = Bench(Path(top).resolve())
        allowed = fuzz(options.commands, options.seed, bench)
        of = f"{options.commands} commands, {allowed} let through, {len(bench.faults)} faults"
        print(f"seed {options.seed}: {of}")
        print(*bench.faults, sep="\n")
        return 1 if bench.faults or not allowed else 0


if __name__ == "__main__":
    sys.exit(main())
