"""Traits of a Gemini model that follow from its name, and what its endpoint may refuse."""

from __future__ import annotations

import re

from crow.llm.http.request_format import Refusal, RequestFormat

UNSIGNED = "unsigned calls"
IDS = "ids of calls"
EFFORT = "effort"
THINKING = "thinking"
SYSTEM = "system"
RESULT_IMAGES = "images in results"
OF_SIGNATURES = r"thought.?signature"

REFUSALS: tuple[Refusal, ...] = (
    (OF_SIGNATURES, {"doubts": True}),
    (r'Unknown name \\?"id\\?"', IDS),
    (r"thinking.?(?:level|budget)|budget.{0,30}thinking", EFFORT),
    (r"thinking.?config|include.?thoughts|thinking is not (?:enabled|supported)", THINKING),
    (r"(?:developer|system).?instruction is not (?:enabled|supported)", SYSTEM),
    (r'multimodal function response|Unknown name \\?"parts\\?"', RESULT_IMAGES),
)
"""What an endpoint says where it refuses something, and what is left out from then on."""
NEWEST = 99.0


def generation(model: str) -> float:
    """The number in a model's name, 2.5 for instance; 0 for what is no Gemini."""
    name = model.rpartition("/")[2]
    if not name.startswith("gemini-"):
        return 0.0
    number = re.match(r"gemini-(?:\w+-)*?(\d+(?:\.\d+)?)", name)
    return float(number[1]) if number else NEWEST


def signs(form: RequestFormat) -> bool:
    """Whether the first call of each step needs a signature."""
    return generation(form.model) >= 3 or UNSIGNED in form.without


def takes_images_in_results(form: RequestFormat) -> bool:
    """Whether a tool's image stands beside its result; else it goes into the next message."""
    return generation(form.model) >= 3 and RESULT_IMAGES not in form.without
