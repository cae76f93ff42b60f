"""The secret that a client has to know: found, made, kept in a file of the owner's alone."""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from crow.core.errors import CrowError

VARIABLE = "CROW_ACP_TOKEN"
SHORTEST = 16
USABLE = re.compile(r"[A-Za-z0-9._~-]+")
"""What an ``Authorization: Bearer`` header and a URL can both carry as it is."""


class TokenError(CrowError):
    """There is no token, or none that can be used."""


def token_of(given: str | None, file: str | None) -> str | None:
    """The token that was given, is in a file or in the environment; None where there is none.

    Takes it out of the environment, so that the programs that the agent starts do not have it.
    Raises `TokenError`.
    """
    inherited = os.environ.pop(VARIABLE, None)
    if given is not None:
        return checked(given, "--token")
    if file is not None:
        return load_or_make(Path(os.path.expanduser(file)))
    return checked(inherited, VARIABLE) if inherited else None


def new_token() -> str:
    """One that nobody can guess."""
    return secrets.token_urlsafe(32)


def checked(token: str, source: str) -> str:
    """The token, if it is one. Raises `TokenError`."""
    if len(token) < SHORTEST:
        raise TokenError(f"{source}: a token has at least {SHORTEST} characters")
    if not USABLE.fullmatch(token):
        raise TokenError(f"{source}: a token has letters, digits and -._~ only")
    return token


def load_or_make(file: Path) -> str:
    """The token in a file; a new one is written there if there is no such file yet.

    Raises `TokenError`, also for a file that others can read.
    """
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as fresh:
            token = new_token()
            fresh.write(token + "\n")
            return token
    except FileExistsError:
        return read(file)
    except OSError as error:
        raise TokenError(f"cannot write {file}: {error.strerror}") from error


def read(file: Path) -> str:
    """The token in a file that only its owner can read. Raises `TokenError`."""
    try:
        with file.open(encoding="utf-8") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
                raise TokenError(f"others can read {file}: chmod 600 {file}")
            return checked(opened.read().strip(), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise TokenError(f"cannot read {file}: {error}") from error
