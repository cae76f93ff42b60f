"""Details in Google's errors, whichever wire they come over: how long to wait, which quota."""

from __future__ import annotations

import re
from typing import Any

from crow.llm.http.text import is_array, is_object

LASTING = r"PerDay|limit: 0\b"
SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")


def retry_delay(body: Any) -> float | None:
    """The seconds of a ``RetryInfo``; None where there is none."""
    for detail in _details(body):
        if match := SECONDS.fullmatch(str(detail.get("retryDelay") or "")):
            return float(match[1])
    return None


def is_passing(body: Any) -> bool:
    """True for a quota that is there again soon; Google names one of a day in the same words."""
    return retry_delay(body) is not None and not re.search(LASTING, str(body))


def _details(body: Any) -> list[dict[str, Any]]:
    if is_array(body) and body:
        body = body[0]
    error = body.get("error") if is_object(body) else None
    details = error.get("details") if is_object(error) else None
    return list(filter(is_object, details)) if is_array(details) else []
