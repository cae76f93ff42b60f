"""The web: a tool that fetches a page as Markdown, and reaches nothing that is not public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated

from crow import Arg
from crow.extensions.web.address import Resolve, look_up, networks
from crow.extensions.web.tool import WebFetch

if TYPE_CHECKING:
    from crow import Agent
    from crow.extensions.web.fetch import Fetcher


@dataclass(eq=False)
class WebHook:
    """Adds the tool ``WebFetch``, which asks for permission unless a rule says otherwise.

    It connects to public addresses only, and to the very address that it looked at, at every hop.
    Proxies are not used.
    """

    name = "web"
    order = 120
    is_its_options = True

    _: KW_ONLY
    allow_private: bool | Sequence[str] = False
    """Private networks that may be reached all the same; true for all of them."""
    limit: Annotated[int, Arg(minimum=1)] = 5_000_000
    """Bytes of a page."""
    timeout: Annotated[float, Arg(above=0)] = 30.0
    """Seconds for a page."""
    resolve: Resolve = look_up

    def __post_init__(self) -> None:
        networks(self.allow_private)  # raises for what is none

    def init_agent(self, agent: Agent) -> None:
        """Add the tool."""
        agent.add_tool(WebFetch(lambda: self.fetcher))

    @property
    def fetcher(self) -> Fetcher:
        """What fetches a page, as the options are now."""
        from crow.extensions.web.fetch import Fetcher

        allowed = tuple(networks(self.allow_private))
        return Fetcher(allowed, self.resolve, self.limit, self.timeout)
