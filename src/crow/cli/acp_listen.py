"""``crow acp --listen``: the same agent for many clients, over HTTP and WebSocket."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError

if TYPE_CHECKING:
    from crow.acp.initialize import AgentCapabilities
    from crow.acp.listen.address import Address
    from crow.core.agent import Agent

PATIENCE = 600.0
IDLE = 1800.0


def declare_listening(parser: Parser) -> None:
    """The options of a server."""
    from crow.cli.options import seconds

    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="serve many clients there over HTTP and WebSocket, not one on standard input",
    )
    parser.add_argument(
        "--token",
        help="--listen: what clients must know; CROW_ACP_TOKEN without it, or one is made up",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="--listen: the token is in this file, or is made up and written there",
    )
    parser.add_argument(
        "--away-timeout",
        metavar="SECONDS",
        type=seconds,
        default=PATIENCE,
        help=f"--listen: how long a question waits for a client that is gone ({PATIENCE:g})",
    )
    parser.add_argument(
        "--idle-timeout",
        metavar="SECONDS",
        type=seconds,
        default=IDLE,
        help=f"--listen: close stored sessions that nobody has used for so long ({IDLE:g})",
    )
    parser.add_argument(
        "--node-url",
        metavar="URL",
        help="--listen: where other nodes on the same PostgreSQL reach this one, such as "
        "http://10.0.0.7:8765/acp (default: where it listens)",
    )


def listen(
    options: argparse.Namespace, build: Callable[[], Agent], offer: AgentCapabilities, out: Output
) -> int:
    """Serve until a signal ends it."""
    from crow.acp.listen import serve_listening
    from crow.acp.listen.address import Address
    from crow.acp.listen.node import Node, node_url
    from crow.acp.listen.token import new_token, token_of

    address = Address.parse(options.listen)

    def find_node(real: Address) -> Node | None:
        """How others reach this server, if they can know its token."""
        return Node(token, node_url(options.node_url, real)) if given is not None else None

    given = token_of(options.token, options.token_file)
    if given is None and options.node_url is not None:
        raise UsageError(
            "--node-url: nodes know each other by a token that all of them have: choose one with "
            "--token-file, --token or CROW_ACP_TOKEN"
        )
    if given is None and not address.is_loopback:
        raise UsageError(
            f"others than this machine can reach {address.host}: choose a token for them with "
            "--token, --token-file or CROW_ACP_TOKEN"
        )
    token = given or new_token()

    def ready(real: Address, node: Node | None) -> None:
        """Tell where to connect, and what the server is among others."""
        out.note(announcement(real, token, is_secret=given is not None))
        if node is not None:
            out.note(f"other nodes on the same store reach it at {node.url}")
        elif options.node_url is not None:
            out.error("--node-url: no other machine has the store of this one; set CROW_STORE")

    serve_listening(
        build,
        offer,
        address,
        token,
        patience=options.away_timeout,
        idle=options.idle_timeout,
        find_node=find_node,
        ready=ready,
    )
    return 0


def announcement(real: Address, token: str, *, is_secret: bool) -> str:
    """The line that tells where to connect; with a token that nobody knows yet."""
    if is_secret:
        return f"listening on {real.url} (Authorization: Bearer, with the token that you chose)"
    return f"listening on {real.url}?token={token}"
