"""Makes up shell commands, asks Crow about each, and runs what it would let through under a tracer.

Fails when a program ran that no rule names, or when a file was written; half of the commands are
asked about under a bare ``Bash`` and deny rules, and fail when a denied program ran. Nothing harmful can run:
PATH has stubs alone. Run it as ``python tests/fuzz_shell.py --seconds 60``; it is no part of the
test suite. With bubblewrap the commands run in a sandbox; with strace every program that they
start is seen, else only the stubs.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from crow.extensions.permissions import LocalDisk, Permissions
from crow.extensions.permissions.opinion import SecondOpinion

RULES = (
    "Bash(npm run *)", "Bash(npm test)", "Bash(git commit *)", "Bash(* --version)", "Bash(printf *)",
    "Bash(test *)", "Bash([ *)", "Bash([[ *)", "Bash(read *)", "Bash(let *)", "Bash(declare *)",
    "Bash(unset *)", "Bash(export *)", "Bash(set *)", "Bash(mapfile *)", "Bash(true *)", "Bash(x=*)",
    "Bash(cd *)", "Bash(xargs npm run *)", "Bash(find *)", "Bash(sort *)", "Bash(watch npm test)",
)  # fmt: skip
READERS = "ls cat head tail grep find wc which diff stat du sort uniq sed date tr cut seq xargs env"
STUBS = ("npm", "git", "curl", "evil", "sh", "watch", "tee", "rm", "touch", *READERS.split())
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
TRACED = re.compile(rb'execve\("((?:[^"\\]|\\.)*)", \[(.*?)\](?:, | <)', re.DOTALL)
DENIED = ("curl", "evil")
OURS = {"npm": ("run", "test"), "git": ("commit", "status", "log"), "watch": ("npm",)}


@dataclass
class Bench:
    """A directory with stubs and a workspace, made anew for each run."""

    top: Path
    bwrap: str | None = shutil.which("bwrap")
    strace: str | None = shutil.which("strace")
    bash: str = shutil.which("bash") or "/bin/bash"
    ran: int = 0
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.top / "bin").mkdir()
        self.log = self.top / "log"
        for name in STUBS:
            stub = self.top / "bin" / name
            stub.write_text(f'#!/bin/sh\nprintf "%s\\n" "{name} $*" >> "{self.log}"\n')
            stub.chmod(0o755)
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
        self.log.write_text("")

    def files(self) -> set[str]:
        return {str(path.relative_to(self.cwd)) for path in self.cwd.rglob("*")}

    def run(self, command: str, *, denying: bool = False) -> str | None:
        """Run a command; what it did that no rule names (or that one denies), or None."""
        before = self.files()
        trace = self.top / "trace"
        argv = [self.bash, "--norc", "--noprofile", "-c", command]
        if self.strace:
            traced = ["-f", "-qq", "-s", "4000", "-e", "trace=execve", "-o", str(trace)]
            argv = [self.strace, *traced, *argv]
        if self.bwrap:
            bound = ["--bind", str(self.top), str(self.top), "--unshare-all", "--die-with-parent"]
            argv = [self.bwrap, "--ro-bind", "/", "/", "--dev", "/dev", *bound, *argv]
        self.spawn(argv)
        self.ran += 1
        seen = self.log.read_text(errors="replace").splitlines()
        is_fine = is_not_denied if denying else is_named
        fault = next((line for line in seen if not is_fine(line.split(" "))), None)
        if fault is None and not denying and self.strace and trace.exists():
            fault = self.unnamed(trace.read_bytes())
        if fault is None and not denying and self.files() != before:
            fault = f"files changed: {self.files() ^ before}"
        if seen or self.files() != before:
            self.fill()
        return fault

    def spawn(self, argv: list[str]) -> None:
        """Run it to its end, or for two seconds."""
        env = {"PATH": str(self.top / "bin"), "HOME": str(self.cwd), "LC_ALL": "C.UTF-8"}
        process = subprocess.Popen(
            argv,
            cwd=self.cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def unnamed(self, trace: bytes) -> str | None:
        """The first program in a trace that is neither a stub nor what runs one."""
        fixed = {os.fsencode(self.bash), b"/bin/sh", b"/usr/bin/sh"}
        for match in TRACED.finditer(trace):
            path = match[1]
            if path in fixed or path.startswith(os.fsencode(self.top / "bin")):
                continue
            if b"= -1" not in trace[match.end() : trace.find(b"\n", match.end())]:
                return f"{path!r} ran"
        return None


def is_named(words: list[str]) -> bool:
    """Whether a rule, or the list of reading programs, names what ran."""
    if words[-1] == "--version" or words[0] in READERS.split():
        return True
    return words[1:2] != [] and words[1] in OURS.get(words[0], ())


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


def fuzz(seconds: float, seed: int, bench: Bench) -> tuple[int, int]:
    """Try commands for a while; how many were asked about in all, how many were let through."""
    rng = random.Random(seed)
    disk, second = LocalDisk(str(bench.cwd)), SecondOpinion(remembered=1)
    denials = [f"Bash({name} *)" for name in DENIED]
    allowing = Permissions.of(allow=RULES, disk=disk, second=second)
    denying = Permissions.of(allow=["Bash"], deny=denials, disk=disk, second=second)
    end = time.monotonic() + seconds
    tried = allowed = 0
    while time.monotonic() < end:
        command = made_up(rng)
        tried += 1
        permissions = rng.choice((allowing, denying))
        decision = permissions.judge("Bash", {"command": command}, cwd=str(bench.cwd))
        if decision.decision != "allow":
            continue
        allowed += 1
        fault = bench.run(command, denying=permissions is denying)
        if fault is not None:
            bench.faults.append(f"{command!r} was let through ({decision.reason}), and: {fault}")
    return tried, allowed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        bench = Bench(Path(top).resolve())
        tried, allowed = fuzz(options.seconds, options.seed, bench)
        print(
            f"seed {options.seed}: {tried} commands, {allowed} let through, {len(bench.faults)} faults"
        )
        print(*bench.faults, sep="\n")
        return 1 if bench.faults or not allowed else 0


if __name__ == "__main__":
    sys.exit(main())
