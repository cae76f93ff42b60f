"""Variables of an environment: which hold secrets, by their names alone; the mark of a command."""

from __future__ import annotations

import re
from collections.abc import Mapping

MARK = "CROW_COMMAND"
"""The variable that tells the processes of one command from others."""
CARRIES = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|CREDENTIAL|CONNECTION_STRING|^AWS_"
    r"|(?:^|_)(?:KEY|PASS|PAT|CREDS|AUTH|AUTHORIZATION|BEARER|COOKIE|DSN|JWT|SK|WEBHOOK)\d*(?:_|$)"
    r"|._PWD?$|OAUTH|(?:^|_)CONN(?:ECTION)?(?:_STR)?$|._HOOK$|PRIVATE$|[^B]PASS$"
    r"|(?:SECRET|PRIVATE|ACCESS|MASTER)KEY$"
    r"|^CROW_STORE$|^(?:DATABASE|POSTGRES|MYSQL|REDIS|MONGO|MONGODB|AMQP|RABBITMQ|CELERY_BROKER|BROKER)_UR[IL]$"
)
HARMLESS = re.compile(
    r"TOKENI[SZ]|_(?:FILE|PATH|DIR|SOCK|LIMIT|COUNT|SIZE|LENGTH|TTL|TYPE|TIMEOUT|ENABLED)$"
    r"|(?:TOKENS?|KEY|AUTH|SECRET|PASSWORD|PASS|COOKIE|JWT|CREDENTIALS?|DSN)_"
    r"(?:NAME|URL|METHOD|MODE|DOMAIN|HOST|PORT|ISSUER|AUDIENCE|ALGORITHM|SECONDS|DAYS|EXPIRY|USED)$"
    r"|(?:MAX|MIN|NUM|TOTAL|PROMPT|COMPLETION|INPUT|OUTPUT|THINKING|CONTEXT|BUDGET)_(?:\w+_)?TOKENS?"
    r"|TOKENS?_(?:PER|LEFT|BUDGET)|(?:PUBLIC|PRIMARY|FOREIGN|SORT|CACHE)_KEY$"
    r"|^(?:COMPASS|BYPASS|GOOGLE_APPLICATION_CREDENTIALS)$"
    r"|^AWS_(?:\w+_)?(?:REGION|PROFILE|PAGER|OUTPUT|MODE|ATTEMPTS|ENDPOINT_URL|ACCOUNT_ID|CONFIG)$"
)


def is_secret(name: str) -> bool:
    """Whether a variable of the environment carries a secret, by its name."""
    upper = name.upper()
    return CARRIES.search(upper) is not None and HARMLESS.search(upper) is None


def mark_of(env: Mapping[str, str]) -> str:
    """The mark in an environment, as ``NAME=VALUE``; empty where there is none."""
    return f"{MARK}={env[MARK]}" if env.get(MARK) else ""
