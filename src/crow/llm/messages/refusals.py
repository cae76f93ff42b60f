"""Refusals of this wire's features, known by the wording of endpoints."""

from __future__ import annotations

from crow.llm.http.request_format import Refusal

BOUND = "bound_thinking"
"""Thoughts that fail their check are dropped by the endpoint, and nothing is refused for them."""
CACHE = "cache_control"
DISPLAY = "display"
EFFORT = "effort"
LATE_SYSTEM = "late_system"
THINKING = "thinking"

UNKNOWN = (
    r"[^.]{0,80}(?:not permitted|not supported|unsupported|unknown|unexpected|not allowed|invalid"
    r"|unrecogni[sz]ed|deprecated)"
)
REFUSALS: tuple[Refusal, ...] = (
    (r"bound to a different|prefix_binding_mismatch", BOUND),
    (r"bound to a different|block_binding|thinking-binding", {"thoughts": False}),
    (r"`?signature`? in `?thinking`?|thinking\.signature|cannot be modified", {"doubts": True}),
    (
        rf"content\.\d+\.(?:redacted_)?thinking\b{UNKNOWN}|input tag '(?:redacted_)?thinking'",
        {"thoughts": False},
    ),
    (rf"cache_control(?!.{{0,40}}maximum){UNKNOWN}", CACHE),
    (r"role 'system'|role.{0,40}(?:system|'user' or 'assistant')|unexpected role", LATE_SYSTEM),
    (rf"thinking\.(?:adaptive\.)?display{UNKNOWN}", DISPLAY),
    (rf"(?:output_config|effort){UNKNOWN}", EFFORT),
    (rf"(?:thinking\.type|adaptive thinking|`?thinking`?){UNKNOWN}", THINKING),
)
