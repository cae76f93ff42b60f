"""Credentials by server: in the system's keyring where one works, else in a file.

The file is readable by its owner alone and written whole. What went into the keyring is read back
before anybody relies on it, and a keyring that does not answer is left alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from crow.project import read_secrets, state_directory, write_secrets

try:
    import fcntl
except ImportError:  # Windows: nobody else is kept out there
    fcntl = None

T = TypeVar("T")
Entry = dict[str, Any]
SERVICE = "crow mcp"
KEYRING = "keyring"
PATIENCE = 3.0
"""Seconds that a keyring may take: it may be waiting for somebody to unlock it."""
LONGEST, POLL = 30.0, 0.05
"""Seconds that somebody else's renewal of a token is waited for, and between two looks at it."""


def key_of(name: str, url: str) -> str:
    """What a server goes by here; its address may hold what nobody should read."""
    return f"{name}|{hashlib.sha256(url.encode()).hexdigest()[:16]}"


class CredentialStore:
    """Entries by key, as JSON. All that it does may wait for a disk or a keyring."""

    def __init__(self, path: Path | None = None, *, keyring: bool = True) -> None:
        self.path = path or state_directory() / "mcp-credentials.json"
        self._has_keyring = keyring

    def load(self, key: str) -> Entry:
        """What is kept; nothing where the keyring does not give it."""
        entry = read_secrets(self.path).get(key, {})
        if not entry.get(KEYRING):
            return entry
        text = self._keyring(lambda ring: ring.get_password(SERVICE, key))
        found: object = json.loads(text) if text else None
        return cast(Entry, found) if isinstance(found, dict) else {}

    def store(self, key: str, entry: Entry) -> None:
        """Keep an entry. Raises ``OSError`` where it cannot be written."""
        kept = {KEYRING: True} if self._into_keyring(key, json.dumps(entry)) else entry
        with self._locked():
            write_secrets(self.path, {**read_secrets(self.path), key: kept})

    def drop(self, key: str) -> bool:
        """Forget an entry; False where there was none."""
        with self._locked():
            entries = read_secrets(self.path)
            gone = entries.pop(key, None)
            if gone is not None:
                write_secrets(self.path, entries)
        if gone is not None and gone.get(KEYRING):
            self._keyring(lambda ring: ring.delete_password(SERVICE, key))
        return gone is not None

    def place(self, key: str) -> str:
        """Where an entry is, for people; empty where there is none."""
        entry = read_secrets(self.path).get(key)
        if entry is None:
            return ""
        return "the system's keyring" if entry.get(KEYRING) else str(self.path)

    @asynccontextmanager
    async def alone(self, key: str) -> AsyncGenerator[None]:
        """Keep every other process from renewing what an entry holds, for a bounded time."""
        path = self.path.with_name(f"{self.path.stem}-{key.rpartition('|')[2]}.lock")
        fd = _open(path)
        try:
            end = asyncio.get_running_loop().time() + LONGEST
            while not _is_locked(fd) and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110
                await asyncio.sleep(POLL)  # another process sets no event
            yield
        finally:
            os.close(fd)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """One process writes at a time."""
        fd = _open(self.path.with_suffix(".lock"))
        try:
            if fcntl is not None:
                fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    # the keyring

    def _into_keyring(self, key: str, text: str) -> bool:
        def put(ring: Any) -> bool:
            ring.set_password(SERVICE, key, text)
            return ring.get_password(SERVICE, key) == text

        return bool(self._keyring(put))

    def _keyring(self, act: Callable[[Any], T]) -> T | None:
        """What comes of it; None where there is no keyring, or none that works."""
        if not self._has_keyring:
            return None
        done, answers = threading.Event(), list[T]()

        def try_it() -> None:
            try:
                import keyring

                answers.append(act(keyring))
            except Exception:  # noqa: BLE001 - back ends raise what they like
                answers.clear()
            finally:
                done.set()

        threading.Thread(target=try_it, daemon=True).start()  # nobody waits for one that hangs
        if not done.wait(PATIENCE):
            self._has_keyring = False
            return None
        return answers[0] if answers else None


def _open(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _is_locked(fd: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
