"""Runs commands in a sandbox under a tracer, many of them at once, and says what each one did.

Each runs in a subshell of one bash, behind a mark that shows in the trace. The sandbox (bubblewrap)
can write to one directory alone; what a command tried and was not let counts as done.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MARK = "/crow-mark/"
CALLS = (
    "execve,execveat,open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,"
    "mkdirat,rmdir,link,linkat,symlink,symlinkat,mknod,mknodat,chmod,fchmod,fchmodat,chown,lchown,"
    "fchown,fchownat,truncate,ftruncate,utime,utimes,utimensat,futimesat,setxattr,lsetxattr,"
    "fsetxattr,removexattr,connect,bind,mount,umount2,settimeofday,clock_settime,sethostname,chroot"
)
LINE = re.compile(r"(?:\d+ +)?(\w+)\((.*)")
BEGUN = re.compile(r"(\d+) +(\w+\(.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)")
OPENED = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)", (.*)')
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE")
SANDBOX = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all")
NAME_SERVICE = re.compile(r'"/var/run/nscd/socket"')


@dataclass
class Deeds:
    """What one command did: programs and files that it opened, and whatever else it changed."""

    cwd: str
    ran: list[str] = field(default_factory=list[str])
    argv: list[str] = field(default_factory=list[str])
    opened: set[str] = field(default_factory=set[str])
    changed: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Tracer:
    """Where commands run: ``top`` alone can be written, ``search`` is PATH, ``home`` is HOME."""

    top: Path
    search: str
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @staticmethod
    def is_there() -> bool:
        """Whether this machine has what it takes."""
        needed = all(shutil.which(name) for name in ("strace", "bwrap", "bash"))
        tried = [*SANDBOX, "strace", "-qq", "-o", os.devnull, "true"]
        return needed and subprocess.run(tried, capture_output=True, check=False).returncode == 0

    def run(self, cases: Sequence[tuple[str, Path]], *, seconds: float = 60) -> list[Deeds]:
        """Run commands, each in its directory. Those that time cuts off did nothing more."""
        script, trace = self.top / "script", self.top / "trace"
        trace.write_text("")
        script.write_text(_script(cases))
        argv = [
            *SANDBOX,
            "--bind",
            str(self.top),
            str(self.top),
            "--die-with-parent",
            "strace",
            "-f",
        ]
        argv += [
            "--seccomp-bpf",
            "-qq",
            "-y",
            "-s",
            "4096",
            "-e",
            f"trace={CALLS}",
            "-e",
            "signal=none",
            "-o",
            str(trace),
            "bash",
            "--norc",
            "--noprofile",
            str(script),
        ]
        self._spawn(argv, seconds)
        return read_trace(trace, [str(cwd) for _, cwd in cases])

    def _spawn(self, argv: list[str], seconds: float) -> None:
        env = {"PATH": self.search, "LC_ALL": "C", **self.variables}
        argv[0] = shutil.which("bwrap") or "bwrap"
        argv[argv.index("strace")] = shutil.which("strace") or "strace"
        argv[argv.index("bash")] = shutil.which("bash") or "bash"
        process = subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _script(cases: Sequence[tuple[str, Path]]) -> str:
    lines = ["exec </dev/null >/dev/null 2>&1"]
    for number, (command, cwd) in enumerate(cases):
        lines.append(f"true <{MARK}{number}")
        lines.append(f"(cd {shlex.quote(str(cwd))} && eval {shlex.quote(command)})")
    return "\n".join([*lines, f"true <{MARK}end", ""])


def read_trace(trace: Path, cwds: Sequence[str]) -> list[Deeds]:
    """Sort the lines of a trace by the marks between them."""
    found = [Deeds(cwd) for cwd in cwds]
    current: Deeds | None = None
    with trace.open(errors="replace") as lines:
        for line in _whole(lines):
            if MARK in line:
                number = line.partition(MARK)[2].partition('"')[0]
                current = found[int(number)] if number.isdigit() else None
            elif current is not None and (match := LINE.match(line)):
                _note(current, match[1], match[2])
    return found


def _whole(lines: Iterable[str]) -> list[str]:
    """Join each call that others interrupted in the trace: what came of it stands where it ends."""
    whole: list[str] = []
    begun: dict[str, int] = {}
    for line in lines:
        if start := BEGUN.match(line):
            begun[start[1]] = len(whole)
            whole.append(start[2])
        elif (rest := RESUMED.match(line)) and rest[1] in begun:
            whole[begun.pop(rest[1])] += rest[2]
        else:
            whole.append(line)
    return whole


def _note(deeds: Deeds, call: str, rest: str) -> None:
    if call in {"execve", "execveat"}:
        path = QUOTED.search(rest)
        deeds.ran.append(path[1] if path else rest)
        deeds.argv.append(rest)
    elif call in {"open", "openat", "openat2"} and (opened := OPENED.match(rest)):
        folder, name, flags = opened.groups()
        path = name if name.startswith("/") else f"{folder or deeds.cwd}/{name}"
        if WRITING.search(flags):
            deeds.changed.append(f"{call} {path} {flags.partition(')')[0]}")
        elif " = -1 " not in flags:
            whole = os.path.realpath(path) if ".." in path else os.path.normpath(path)
            deeds.opened.add("/" + whole.lstrip("/"))
    elif call == "connect" and NAME_SERVICE.search(rest):
        return
    else:
        deeds.changed.append(f"{call}({rest.strip()}")
