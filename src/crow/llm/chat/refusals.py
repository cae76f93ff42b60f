"""Refusals of endpoints of chat completions, known by their wording.

The table of models knows some of it in advance, in the same words (`crow.llm.models.REFUSALS`).
"""

from __future__ import annotations

from crow.llm.refusals import Refusal

DEVELOPER = "developer"
LIMITS = ("max_tokens", "max_completion_tokens")
TEMPERATURE = "temperature"
STRICT = "strict"
STORE = "store"
THINKING_WITH_TOOLS = "tools_on_chat"
FORCED = "forced_tools"
EFFORT_BESIDE_THINKING = "effort beside thinking"
NULL = "null_content"
NO_TOOLS = "absent_tools"
UNSIGNED_CALLS = "unsigned calls"

KNOWN_IN_ADVANCE = frozenset(
    {DEVELOPER, *LIMITS, TEMPERATURE, STRICT, STORE, THINKING_WITH_TOOLS, FORCED, NULL, NO_TOOLS}
)
UNTAKEN = (
    r"(?:not permitted|unsupported|not supported|does not support|unknown|unrecogni[sz]ed"
    r"|not allowed|unexpected|forbidden|invalid|deprecated)"
)
THOUGHTS_REFUSED = (
    r"(?:reasoning\w*|extra_content|thinking_blocks)[^.]{0,60}(?:not permitted|unsupported"
    r"|not supported|unknown|unrecogni[sz]ed|not allowed|unexpected|forbidden)"
    r"|(?:unsupported|unknown|unrecogni[sz]ed|unexpected|additional)[^.]{0,60}"
    r"(?:reasoning_(?!effort)|extra_content|thinking_blocks|'reasoning'|\"reasoning\")"
)
REFUSALS: tuple[Refusal, ...] = (
    (r"stream_options", {"usage": False}),
    (r"reasoning_content.{0,60}(?:must be passed back|is missing)", {"echoes": True}),
    (r"tool.?call.{0,200}length of 9\b", {"ids": 9}),
    (r"maximum length (?:of )?40\b", {"ids": 40}),
    (r"unexpected role 'user' after role 'tool'", {"answered": True}),
    (r"missing a .?thought_?signature", UNSIGNED_CALLS),
    (r"(?:function )?tools with reasoning_effort", THINKING_WITH_TOOLS),
    (r"both '?thinking'? and '?reasoning_effort", EFFORT_BESIDE_THINKING),
    (r"use '?max_completion_tokens", "max_tokens"),
    (rf"max_completion_tokens['\"`]?.{{0,40}}{UNTAKEN}", "max_completion_tokens"),
    (rf"{UNTAKEN}[^.']{{0,40}}['\"`]?max_completion_tokens", "max_completion_tokens"),
    (rf"['\"`]?temperature['\"`]?.{{0,40}}{UNTAKEN}", TEMPERATURE),
    (rf"{UNTAKEN}[^.]{{0,40}}['\"`]temperature", TEMPERATURE),
    (rf"role.{{0,60}}\bdeveloper\b|\bdeveloper\b.{{0,60}}(?:role|{UNTAKEN})", DEVELOPER),
    (rf"\bstrict\b.{{0,60}}{UNTAKEN}|'additionalProperties' is required", STRICT),
    (rf"{UNTAKEN}[^.]{{0,40}}['\"`]strict\b", STRICT),
    (rf"['\"`]store['\"`].{{0,40}}{UNTAKEN}|{UNTAKEN}[^.]{{0,40}}['\"`]store['\"`]", STORE),
    (r"expects the .?tools=?.? param", NO_TOOLS),
    (r"tool_choice.{0,80}thinking|thinking.{0,80}tool_choice", FORCED),
    (
        (
            r"content.{0,100}(?:\bnull\b|\bnone\b|nonetype)"
            r"|null, expected a? ?string|'?nonetype'? object"
        ),
        NULL,
    ),
    (THOUGHTS_REFUSED, {"thoughts": False}),
)
