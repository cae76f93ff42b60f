"""API keys that the user stored, by provider: in the system's keyring, else in a file of their own.

The keyring is used where the library `keyring` is installed and finds one; the file is readable by
its owner alone, and names the providers in either case.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crow.project.files import read_secrets, write_secrets
from crow.project.home import config_directory

SERVICE = "crow"
KEYRING = "keyring"
KEY = "key"


def load(provider: str) -> str | None:
    """The key of a provider; None where none is stored or the keyring does not give it."""
    entry = read_secrets(path()).get(provider, {})
    key = _from_keyring(provider) if entry.get(KEYRING) else entry.get(KEY)
    return key if isinstance(key, str) else None


def store(provider: str, key: str) -> str:
    """Keep a key; says where. Raises ``OSError`` where the file cannot be written."""
    in_keyring = _to_keyring(provider, key)
    entry: dict[str, Any] = {KEYRING: True} if in_keyring else {KEY: key}
    write_secrets(path(), {**read_secrets(path()), provider: entry})
    return "the system's keyring" if in_keyring else str(path())


def forget(provider: str) -> bool:
    """Remove a key; False where there was none."""
    entries = read_secrets(path())
    entry = entries.pop(provider, None)
    if entry is None:
        return False
    if entry.get(KEYRING):
        _out_of_keyring(provider)
    write_secrets(path(), entries)
    return True


def stored_providers() -> list[str]:
    """The keys that are in the file itself."""
    entries = read_secrets(path()).values()
    return [key for entry in entries if isinstance(key := entry.get(KEY), str)]


def providers() -> list[str]:
    """The providers that have a stored key."""
    return sorted(read_secrets(path()))


def places(env: Mapping[str, str]) -> dict[str, str]:
    """The providers that have a key, with the variable that holds it; empty for a stored one."""
    from crow.llm.presets import PRESETS

    named = {name: next(filter(env.get, preset.key_names), "") for name, preset in PRESETS.items()}
    held = {name: variable for name, variable in named.items() if variable}
    return dict(sorted({**dict.fromkeys(providers(), ""), **held}.items()))


def path() -> Path:
    """The file."""
    return config_directory() / "credentials.json"


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
