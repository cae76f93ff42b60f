"""Refusals of endpoints, known by their wording, and the form that is sent instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from crow.core.errors import ModelError
from crow.llm.http.request_format import RequestFormat, said_in

Refusal: TypeAlias = "tuple[str, str | Mapping[str, Any]]"
"""What an endpoint says, and the word for what is left out then, or what fields become."""


def without_refused(
    form: RequestFormat, error: ModelError, known: Iterable[Refusal]
) -> RequestFormat | None:
    """The form without what an endpoint has just refused, by the first row that is new.

    None where that cannot be told. Thoughts that are not sent cannot be doubted.
    """
    said = said_in(error)
    for pattern, change in known:
        word = isinstance(change, str)
        less = replace(form, **({"without": form.without | {change}} if word else change))
        if less != form and re.search(pattern, said, re.IGNORECASE):
            return less if form.thoughts or not less.doubts else None
    return None
