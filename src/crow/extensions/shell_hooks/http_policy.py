"""The policy on HTTP hooks of an administrator or a user: which servers, which variables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from crow.dataclasses import frozen
from crow.extensions.shell_hooks.handler import Handler


@frozen
class Bounds:
    """``urls`` are patterns in which ``*`` stands for anything; ``variables`` those of headers.

    None is no bound; an empty list lets nothing through.
    """

    urls: Sequence[str] | None = None
    variables: Sequence[str] | None = None

    def within(self, handler: Handler) -> Handler:
        """The entry as far as it may go: inactive, or with fewer variables."""
        if handler.kind != "http":
            return handler
        if self.urls is not None and not any(_fits(handler.spec["url"], url) for url in self.urls):
            inactive = handler.inactive or "no pattern of allowedHttpHookUrls fits its url"
            return replace(handler, inactive=inactive)
        if self.variables is None:
            return handler
        wanted = cast("list[object]", handler.spec.get("allowedEnvVars") or [])
        allowed = [name for name in wanted if name in self.variables]
        return replace(handler, spec={**handler.spec, "allowedEnvVars": allowed})


def _fits(url: str, pattern: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), url) is not None
