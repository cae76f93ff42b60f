"""Amazon Bedrock: requests signed with AWS credentials, wherever botocore finds some."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from crow.core.errors import ModelError
from crow.llm.clouds import has, require

KEY = "AWS_BEARER_TOKEN_BEDROCK"
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
IN_HOST = re.compile(r"\bbedrock-(?:mantle|runtime)(?:-fips)?\.([a-z0-9-]+)\.")
RUNTIME = "bedrock-runtime"
SIGNED = {"content-type": "application/json"}
"""The headers that are signed beside host, date and session; proxies change others."""
NONE = (
    "no AWS credentials were found: run aws configure or aws sso login, choose a profile with"
    f" AWS_PROFILE, or set {KEY}"
)


def places(env: Mapping[str, str]) -> Mapping[str, str]:
    """The region, of the environment or of the AWS profile."""
    region = next(filter(None, map(env.get, REGIONS)), None)
    if not region and has("botocore"):
        region = import_module("botocore.session").Session().get_config_variable("region")
    if not region:
        what = "bedrock needs a region: set AWS_REGION, us-east-1 for instance"
        raise ModelError(what, kind="unconfigured")
    return {"region": str(region)}


def credentials(url: str, env: Mapping[str, str]) -> Mapping[str, Any]:
    """What signs requests."""
    require("botocore", "bedrock", f"set {KEY}")
    found = IN_HOST.search(urlsplit(url).hostname or "")
    signature = Signature(found[1] if found else places(env)["region"], service_at(url))
    return {"sign": signature, "key_origin": "your AWS credentials"}


def service_at(url: str) -> str:
    """The service that a request to a URL is signed for."""
    return "bedrock" if RUNTIME in (urlsplit(url).hostname or "") else "bedrock-mantle"


class Signature:
    """Signs requests with version 4, for a region and a service.

    Credentials are looked for with the first request and renewed by botocore itself; ``secrets``
    are what they hold.
    """

    def __init__(self, region: str, service: str) -> None:
        self._region = region
        self._service = service
        self._credentials: Any = None
        self.secrets: set[str] = set()

    async def __call__(self, url: str, body: bytes) -> Mapping[str, str]:
        """The headers that vouch for a POST. Raises `ModelError` (unconfigured)."""
        return await asyncio.to_thread(self._signed, url, body)

    def _signed(self, url: str, body: bytes) -> Mapping[str, str]:
        errors = import_module("botocore.exceptions")
        try:
            if self._credentials is None:
                self._credentials = import_module("botocore.session").Session().get_credentials()
            if self._credentials is None:
                raise ModelError(NONE, kind="unconfigured")
            keys = self._credentials.get_frozen_credentials()
        except (errors.BotoCoreError, errors.ClientError) as error:
            what = f"the AWS credentials cannot be used: {error}"
            raise ModelError(what, kind="unconfigured") from error
        self.secrets |= {keys.secret_key, *filter(None, [keys.token])}
        request = import_module("botocore.awsrequest").AWSRequest("POST", url, SIGNED, body)
        sign = import_module("botocore.auth").SigV4Auth(keys, self._service, self._region)
        sign.add_auth(request)
        return {name.lower(): str(value) for name, value in request.headers.items()}
