"""API keys that the user stored, by provider: in the system's keyring, else in a file of their own.

The keyring is used where the library `keyring` is installed and finds one; the file is readable by
its owner alone, and names the providers in either case.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from crow.project.files import write_atomically
from crow.project.home import config_directory

SERVICE = "crow"
KEYRING = "keyring"
KEY = "key"


def load(provider: str) -> str | None:
    """The key of a provider; None where none is stored or the keyring does not give it."""
    entry = _entries().get(provider, {})
    return _from_keyring(provider) if entry.get(KEYRING) else entry.get(KEY)


def store(provider: str, key: str) -> str:
    """Keep a key; says where. Raises ``OSError`` where the file cannot be written."""
    in_keyring = _to_keyring(provider, key)
    entry: dict[str, Any] = {KEYRING: True} if in_keyring else {KEY: key}
    _write({**_entries(), provider: entry})
    return "the system's keyring" if in_keyring else str(path())


def forget(provider: str) -> bool:
    """Remove a key; False where there was none."""
    entries = _entries()
    entry = entries.pop(provider, None)
    if entry is None:
        return False
    if entry.get(KEYRING):
        _out_of_keyring(provider)
    _write(entries)
    return True


def kept() -> list[str]:
    """The keys that are in the file itself."""
    return [key for entry in _entries().values() if isinstance(key := entry.get(KEY), str)]


def providers() -> list[str]:
    """The providers that have a stored key."""
    return sorted(_entries())


def path() -> Path:
    """The file."""
    return config_directory() / "credentials.json"


def _entries() -> dict[str, dict[str, Any]]:
    try:
        found: object = json.loads(path().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    entries = cast("dict[str, object]", found).items()
    return {name: cast("dict[str, Any]", each) for name, each in entries if isinstance(each, dict)}


def _write(entries: dict[str, dict[str, Any]]) -> None:
    """Replace the file; nobody else can read it at any moment."""
    write_atomically(path(), json.dumps(entries, indent=2), private=True)


def _to_keyring(provider: str, key: str) -> bool:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return False
    try:
        keyring.set_password(SERVICE, provider, key)
    except KeyringError:
        return False
    return True


def _from_keyring(provider: str) -> str | None:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return None
    try:
        return keyring.get_password(SERVICE, provider)
    except KeyringError:
        return None


def _out_of_keyring(provider: str) -> None:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return
    try:
        keyring.delete_password(SERVICE, provider)
    except KeyringError:
        return
