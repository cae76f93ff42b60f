"""Refusals of this wire's features, known by the wording of endpoints."""

from __future__ import annotations

import re
from dataclasses import replace

from crow.llm.http.request_format import RequestFormat

BOUND = "bound_thinking"
"""Thoughts that fail their check are dropped by the endpoint, and nothing is refused for them."""
CACHE = "cache_control"
DISPLAY = "display"
EFFORT = "effort"
LATE_SYSTEM = "late_system"
THINKING = "thinking"
THOUGHTS = "thoughts"
"""What was thought, sent back."""
THESE = "these thoughts"
"""Those in the request, which were changed, or signed for something else."""

UNKNOWN = (
    r"[^.]{0,80}(?:not permitted|not supported|unsupported|unknown|unexpected|not allowed|invalid"
    r"|unrecogni[sz]ed|deprecated)"
)
REFUSED = (
    (BOUND, r"bound to a different|prefix_binding_mismatch"),
    (THOUGHTS, r"bound to a different|block_binding|thinking-binding"),
    (THESE, r"`?signature`? in `?thinking`?|thinking\.signature|cannot be modified"),
    (
        THOUGHTS,
        rf"content\.\d+\.(?:redacted_)?thinking\b{UNKNOWN}|input tag '(?:redacted_)?thinking'",
    ),
    (CACHE, rf"cache_control(?!.{{0,40}}maximum){UNKNOWN}"),
    (LATE_SYSTEM, r"role 'system'|role.{0,40}(?:system|'user' or 'assistant')|unexpected role"),
    (DISPLAY, rf"thinking\.(?:adaptive\.)?display{UNKNOWN}"),
    (EFFORT, rf"(?:output_config|effort){UNKNOWN}"),
    (THINKING, rf"(?:thinking\.type|adaptive thinking|`?thinking`?){UNKNOWN}"),
)
"""Features, and what an endpoint says that refuses them: the first that is not left out yet."""


def without_refused(form: RequestFormat, said: str) -> RequestFormat | None:
    """The form without what an endpoint has just refused; None where that cannot be told."""
    for feature, pattern in REFUSED:
        if feature not in form.without and re.search(pattern, said, re.IGNORECASE):
            if feature == THESE:
                return replace(form, doubts=True) if form.thoughts else None
            less = replace(form, without=form.without | {feature})
            return replace(less, thoughts=form.thoughts and THOUGHTS not in less.without)
    return None
