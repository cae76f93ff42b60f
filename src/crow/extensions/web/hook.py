"""The extension: it brings the tool."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from crow.extensions.web.address import Resolve, look_up, networks
from crow.extensions.web.tool import WebFetch

if TYPE_CHECKING:
    from crow import Agent
    from crow.extensions.web.fetch import Fetcher


class WebHook:
    """Adds the tool ``WebFetch``, which asks for permission unless a rule says otherwise.

    It connects to public addresses only, and to the very address that it looked at, at every hop.
    ``allow_private`` names networks that may be reached all the same (True: all of them).
    ``limit`` is in bytes, ``timeout`` in seconds. Proxies are not used.
    """

    name = "web"
    order = 120

    def __init__(
        self,
        *,
        allow_private: bool | Sequence[str] = False,
        limit: int = 5_000_000,
        timeout: float = 30.0,
        resolve: Resolve = look_up,
    ) -> None:
        self._options = tuple(networks(allow_private)), resolve, limit, timeout

    def init_agent(self, agent: Agent) -> None:
        """Add the tool."""
        agent.add_tool(WebFetch(lambda: self.fetcher))

    @cached_property
    def fetcher(self) -> Fetcher:
        """What fetches, made for the first page."""
        from crow.extensions.web.fetch import Fetcher

        return Fetcher(*self._options)
