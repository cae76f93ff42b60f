"""Vertex AI: access tokens of Google Cloud's Application Default Credentials, by google-auth."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from crow.core.errors import ModelError
from crow.core.support.frozen import frozen
from crow.llm.clouds import require

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
PROJECTS = (
    "GOOGLE_CLOUD_PROJECT",
    "ANTHROPIC_VERTEX_PROJECT_ID",
    "GCLOUD_PROJECT",
    "CLOUDSDK_CORE_PROJECT",
)
LOCATIONS = ("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION")
EVERYWHERE = "global"
MULTI_REGIONS = ("us", "eu")
LOGIN = "run gcloud auth application-default login"
TIMEOUT = 60.0


def places(env: Mapping[str, str]) -> Mapping[str, str]:
    """The project, the location, and the host that serves it."""
    project = next(filter(None, map(env.get, PROJECTS)), None)
    if not project:
        what = "vertex needs a project of Google Cloud: set GOOGLE_CLOUD_PROJECT"
        raise ModelError(what, kind="unconfigured")
    location = next(filter(None, map(env.get, LOCATIONS)), EVERYWHERE)
    return {"project": project, "location": location, "host": host_of(location)}


def host_of(location: str) -> str:
    """The host of a location."""
    if location == EVERYWHERE:
        return "aiplatform.googleapis.com"
    if location in MULTI_REGIONS:
        return f"aiplatform.{location}.rep.googleapis.com"
    return f"{location}-aiplatform.googleapis.com"


def credentials(url: str, env: Mapping[str, str]) -> Mapping[str, Any]:
    """What gives access tokens."""
    require("google.auth", "vertex", "an apiKeyHelper: gcloud auth print-access-token")
    return {"fetch_key": Tokens().token, "key_origin": "your Google Cloud credentials"}


class Tokens:
    """Access tokens, each used until it is about to expire or was refused."""

    def __init__(self) -> None:
        self._credentials: Any = None
        self._lock = asyncio.Lock()

    async def token(self, refused: str = "") -> str:
        """A token other than the one that was ``refused``. Raises `ModelError` (unconfigured)."""
        async with self._lock:
            return await asyncio.to_thread(self._token, refused)

    def _token(self, refused: str) -> str:
        errors = import_module("google.auth.exceptions")
        try:
            if self._credentials is None:
                logging.getLogger("google.auth").addHandler(logging.NullHandler())  # says it itself
                self._credentials = import_module("google.auth").default(scopes=[SCOPE])[0]
            if not self._credentials.valid or self._credentials.token == refused:
                self._credentials.refresh(ask)
        except errors.DefaultCredentialsError as error:
            what = f"no credentials of Google Cloud were found: {LOGIN}"
            raise ModelError(what, kind="unconfigured") from error
        except errors.GoogleAuthError as error:
            what = f"Google Cloud gave no token ({error}): {LOGIN}"
            raise ModelError(what, kind="unconfigured") from error
        return str(self._credentials.token)


@frozen
class AuthResponse:
    """A response as google-auth reads it."""

    status: int
    headers: Mapping[str, str]
    data: bytes


def ask(
    url: str,
    method: str = "GET",
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
    **_: object,
) -> AuthResponse:
    """Send a request of google-auth's. Raises its ``TransportError``."""
    import httpx2

    try:
        given = httpx2.request(
            method, url, content=body, headers=headers, timeout=timeout or TIMEOUT
        )
    except httpx2.HTTPError as error:
        raise import_module("google.auth.exceptions").TransportError(error) from error
    return AuthResponse(given.status_code, given.headers, given.content)
