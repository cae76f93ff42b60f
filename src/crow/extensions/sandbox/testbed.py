"""A testbed for escapes: a scratch folder with something to lose, and an observer outside."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from string import Template
from typing import Any, Self

from crow.dataclasses import frozen
from crow.extensions.sandbox.backend import Backend, Launch
from crow.extensions.sandbox.escapes import Escape
from crow.extensions.sandbox.mounts import PRIVATE, is_below
from crow.extensions.sandbox.policy import Policy, Proxy, Ring
from crow.extensions.sandbox.protected import protected_paths, secret_paths
from crow.process import ChildProcess, each_process

_SECRET = "crow-secret-3f9a"  # noqa: S105 - what is looked for in the output of those that try
_SECONDS = 120.0
_DYING = 1.0  # seconds for a namespace to go down
_FILES = {
    "home/.ssh/id_ed25519": _SECRET,
    "home/.aws/credentials": _SECRET,
    "home/.config/gh/hosts.yml": _SECRET,
    "home/.netrc": _SECRET,
    "home/.bashrc": "# mine\n",
    "work/.env": _SECRET,
    "work/.crow/settings.json": "{}",
    "work/.claude/settings.json": "{}",
    "work/.vscode/tasks.json": "{}",
    "work/.githooks/pre-commit": "#!/bin/sh\n",
    "evil/config": "[core]\n",
}
_REPOSITORIES = ("work/.git", "work/sub/.git", "work/.git/modules/m", "work/.git/modules/libs/n")
_SETTINGS = "[core]\n\tbare = false\n\thooksPath = .githooks\n"


@frozen
class Outcome:
    """The outcome of one try."""

    escape: Escape
    came_through: bool


class Testbed:
    """Folders, processes and sockets, for as long as the context; all of it is scratch."""

    def __init__(self, *, is_online: bool = False) -> None:
        """``is_online`` for rings with a proxy."""
        self._is_online = is_online
        self._stack = ExitStack()
        self.reached: set[str] = set()

    def __enter__(self) -> Self:
        self.base = tempfile.mkdtemp(prefix="crow-try-", dir=_somewhere())
        self._stack.callback(shutil.rmtree, self.base, ignore_errors=True)
        with self._stack:
            self._write()
            self._listen()
            self._share()
            self._start()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # what there is to lose

    def _write(self) -> None:
        for name, content in _FILES.items():
            path = Path(self.base, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        for name in ("outside", "private"):
            Path(self.base, name).mkdir()
        for name in _REPOSITORIES:
            for inner in ("objects", "refs/heads", "hooks"):
                Path(self.base, name, inner).mkdir(parents=True, exist_ok=True)
            Path(self.base, name, "HEAD").write_text("ref: refs/heads/main\n")
            Path(self.base, name, "config").write_text(_SETTINGS)
        Path(self.base, "work", "out").symlink_to(Path(self.base, "outside"))

    def _listen(self) -> None:
        self.tcp = self._open(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))[1]
        self.udp = self._open(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))[1]
        name = f"crow-try-{os.getpid()}"
        for kind, path, abstract in (
            (socket.SOCK_STREAM, "stream", f"\0{name}"),
            (socket.SOCK_DGRAM, "datagram", f"\0d{name}"),
        ):
            self._open(socket.AF_UNIX, kind, f"{self.base}/{path}")
            if sys.platform == "linux":
                self._open(socket.AF_UNIX, kind, abstract)
        self.abstract = name
        self.pipe = f"{self.base}/pipe"
        os.mkfifo(self.pipe)
        self._read = os.open(self.pipe, os.O_RDWR | os.O_NONBLOCK)
        self._stack.callback(os.close, self._read)

    def _share(self) -> None:
        """Memory and a queue of this process, as System V has them; -1 where it has none."""
        self.memory = self.queue = -1
        if sys.platform != "linux":
            return
        libc = ctypes.CDLL(None)
        self.memory, self.queue = libc.shmget(0, 4096, 0o1600), libc.msgget(0, 0o1600)
        self._stack.callback(libc.shmctl, self.memory, 0, None)
        self._stack.callback(libc.msgctl, self.queue, 0, None)

    def _open(self, family: int, kind: int, address: Any) -> Any:
        """A socket that notes whoever is heard on it; its address."""
        heard = self._stack.enter_context(socket.socket(family, kind))
        heard.bind(address)
        if kind == socket.SOCK_STREAM:
            heard.listen(16)
        heard.settimeout(0.05)
        closed = threading.Event()
        thread = threading.Thread(target=self._hear, args=(heard, kind, closed), daemon=True)
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(closed.set)
        return heard.getsockname()

    def _hear(self, heard: socket.socket, kind: int, closed: threading.Event) -> None:
        while not closed.is_set():
            with contextlib.suppress(TimeoutError, ConnectionError):
                if kind == socket.SOCK_DGRAM:
                    self.reached.add(heard.recv(64).decode())
                    continue
                caller, _ = heard.accept()
                with caller:
                    caller.settimeout(2)
                    self.reached.add(caller.recv(64).decode().strip())

    def _start(self) -> None:
        """A process of the same user, with a secret; a terminal multiplexer, if there is one."""
        victim = subprocess.Popen(
            ["sleep", "600"],
            cwd=f"{self.base}/outside",
            env={"PATH": os.defpath, "SECRET": _SECRET},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._stack.callback(victim.wait)
        self._stack.callback(victim.kill)
        self.victim = victim.pid
        self.tmux = f"{self.base}/tmux"
        if shutil.which("tmux") is None:
            return
        line = ["tmux", "-S", self.tmux, "-f", os.devnull]
        subprocess.run([*line, "new-session", "-d", "sleep 600"], check=False, capture_output=True)
        end = [*line, "kill-server"]
        self._stack.callback(subprocess.run, end, check=False, capture_output=True)

    def policy(self, ring: Ring) -> Policy:
        """A ring around the workspace, as a session's is."""
        root = f"{self.base}/work"
        masked = (*secret_paths(f"{self.base}/home"), f"{root}/.env")
        tmp = f"{self.base}/private"
        network = Proxy(("example.invalid",)) if self._is_online else "none"
        protected = protected_paths(root)
        return Policy(ring, (root,), tmp, read_only=protected, masked=masked, network=network)

    # trying

    async def try_all(
        self, backend: Backend, ring: Ring, escapes: Sequence[Escape]
    ) -> list[Outcome]:
        """Run them all in one sandbox, one after another, and look what became of them."""
        numbered = dict(enumerate(escapes, 100))
        for number in numbered:
            Path(self.base, "outside", str(number)).write_text("intact")
        before = {number: self._state(each, number) for number, each in numbered.items()}
        printed = await self._run(backend, ring, numbered)
        outputs = _split(printed)
        with contextlib.suppress(BlockingIOError):
            self.reached.update(os.read(self._read, 4096).decode().split())
        outcomes = [
            Outcome(each, self._saw(each, number, outputs.get(number, ""), before[number]))
            for number, each in numbered.items()
        ]
        for number, each in numbered.items():
            self._remove(self._path(each, number))
        return outcomes

    def _remove(self, path: str) -> None:
        """Take away what came through into a folder that everybody shares."""
        if not is_below(path, [self.base]):
            Path(path).unlink(missing_ok=True)

    async def _run(self, backend: Backend, ring: Ring, numbered: dict[int, Escape]) -> str:
        rows = json.dumps([(number, each.code) for number, each in numbered.items()])
        code = Path(__file__).with_name("runner.py").read_text()
        process = _Printed()
        argv = [sys.executable, "-I", "-S", "-c", code, rows]
        launcher = Confined(backend, self.policy(ring))
        await process.start(argv, f"{self.base}/work", self._environment(), launcher=launcher)
        try:
            if not await process.wait(_SECONDS):
                await process.stop(0.1)
            await process.settle(0.2)
        finally:
            process.close()
        return b"".join(process.printed).decode(errors="replace")

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": f"{self.base}/home",
            "O": f"{self.base}/outside",
            "W": f"{self.base}/work",
            "H": f"{self.base}/home",
            "V": str(self.victim),
            "P": str(os.getpid()),
            "TCP": str(self.tcp),
            "UDP": str(self.udp),
            "SOCK": f"{self.base}/stream",
            "DGRAM": f"{self.base}/datagram",
            "ABS": self.abstract,
            "TMUX_SOCK": self.tmux,
            "PIPE": self.pipe,
            "SHM": str(self.memory),
            "MSG": str(self.queue),
        }

    # observing

    def _state(self, escape: Escape, number: int) -> object:
        """How what an escape aims at is just now."""
        return _state(self._path(escape, number)) if escape.proof == "file" else None

    def _path(self, escape: Escape, number: int) -> str:
        names = self._environment() | {"N": str(number)}
        return Template(escape.path or "$O/$N").substitute(names)

    def _saw(self, escape: Escape, number: int, output: str, before: object) -> bool:
        looks: dict[str, Callable[[], bool]] = {
            "file": lambda: self._state(escape, number) != before,
            "said": lambda: "ESCAPED" in output,
            "secret": lambda: _SECRET in output,
            "reached": lambda: str(number) in self.reached,
            "alive": lambda: _goes_on(f"98{number}.{os.getpid()}"),
            "left": lambda: os.path.lexists(self._path(escape, number)),
        }
        return looks[escape.proof]()


class Confined:
    """Starts programs in a ring: what `crow.process.ChildProcess` takes as its launcher."""

    def __init__(self, backend: Backend, policy: Policy) -> None:
        self._backend, self._policy = backend, policy

    def launch(self, argv: Sequence[str], cwd: str, env: Any) -> AbstractContextManager[Launch]:
        """See `crow.extensions.sandbox.backend.Backend.confine`."""
        return self._backend.confine(argv, cwd, env, self._policy)


class _Printed(ChildProcess):
    """Keeps what is printed."""

    def __init__(self) -> None:
        super().__init__()
        self.printed: list[bytes] = []

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.printed.append(data)


def _somewhere() -> str | None:
    """A folder that a sandbox would not hide anyway, where there is one."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    with contextlib.suppress(OSError):
        Path(cache).mkdir(parents=True, exist_ok=True)
    for folder in (cache, "/var/cache", "/var/lib", str(Path.cwd())):
        if not is_below(os.path.realpath(folder), PRIVATE) and os.access(folder, os.W_OK):
            return folder
    return None


def _split(printed: str) -> dict[int, str]:
    """What each printed, by its number."""
    parts = (part.partition("\n") for part in printed.split("\n@@ ")[1:])
    return {int(number): output for number, _, output in parts}


def _state(path: str) -> object:
    """All of a path that must not change, but for when it was looked at."""
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    mark = (seen.st_mode, seen.st_uid, seen.st_ino)
    if stat.S_ISDIR(seen.st_mode):
        return mark, {name: _state(f"{path}/{name}") for name in sorted(os.listdir(path))}  # noqa: PTH208
    if not stat.S_ISREG(seen.st_mode):
        return mark
    return mark, seen.st_mtime_ns, Path(path).read_bytes(), tuple(_attributes(path))


def _attributes(path: str) -> Iterable[str]:
    return os.listxattr(path) if sys.platform == "linux" else ()


def _goes_on(word: str) -> bool:
    """True where a process with this word in its line does not end by itself; it is ended then."""
    until = time.monotonic() + _DYING
    while found := _with_word(word):
        if time.monotonic() > until:
            for pid in found:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            return True
        time.sleep(0.01)
    return False


def _with_word(word: str) -> list[int]:
    lines = each_process("cmdline")
    return [pid for pid, line in lines if word.encode() in line.split(b"\0")]


def try_out(
    backend: Backend, ring: Ring, escapes: Sequence[Escape], *, is_online: bool = False
) -> list[Outcome]:
    """Try them against a stage of their own."""
    with Testbed(is_online=is_online) as stage:
        return asyncio.run(stage.try_all(backend, ring, escapes))
