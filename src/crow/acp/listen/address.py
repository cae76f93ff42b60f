"""The address to listen at: ``HOST:PORT`` as a bound socket, and the hosts and origins under it."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys

from crow.core.errors import CrowError
from crow.core.support.frozen import frozen

PATH = "/acp"
BACKLOG = 128
QUIET, BETWEEN, MISSED = 30, 10, 3
"""Seconds without traffic after which the system asks whether the other machine is still there,
seconds between two such questions, and how many may stay unanswered."""
UNSENT = 60
"""Seconds that sent bytes may stay unacknowledged."""


class AddressError(CrowError):
    """It is not possible to listen there."""


@frozen
class Address:
    """A host (an IP address or a name, without brackets) and a port; 0 for any that is free."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """What stands behind ``--listen``. Raises `AddressError`."""
        host, colon, port = text.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        is_clear = bare and (":" not in bare or bare != host)
        if not (colon and is_clear and port.isascii() and port.isdigit() and int(port) < 65536):
            raise AddressError(
                f"--listen wants HOST:PORT, such as 127.0.0.1:8765 or [::1]:8765, not {text!r}"
            )
        return cls(bare, int(port))

    @property
    def is_loopback(self) -> bool:
        """True where only this machine can connect."""
        address = ip_of(self.host)
        return self.host == "localhost" if address is None else address.is_loopback

    @property
    def url(self) -> str:
        """The address of the endpoint."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{PATH}"

    def under(self, host: str) -> Address:
        """The same port of another host."""
        return Address(host, self.port)

    def bind(self) -> tuple[socket.socket, Address]:
        """A listening socket, and the address with the port that it really has.

        Raises `AddressError` with one line for people.
        """
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
            family, kind, protocol, _name, place = found[0]
            listening = socket.socket(family, kind, protocol)
        except OSError as error:
            raise AddressError(f"cannot listen on {self.host}: {reason(error)}") from error
        try:
            prepare(listening)
            listening.bind(place)
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            raise AddressError(
                f"cannot listen on {self.host}:{self.port}: {reason(error)}"
            ) from error
        return listening, Address(self.host, listening.getsockname()[1])


def prepare(listening: socket.socket) -> None:
    """Options that the accepted connections inherit: a dead peer is noticed by the system."""
    listening.setblocking(False)
    if sys.platform != "win32":  # there it would let two processes share the port
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", QUIET),
        ("TCP_KEEPINTVL", BETWEEN),
        ("TCP_KEEPCNT", MISSED),
        ("TCP_USER_TIMEOUT", UNSENT * 1000),
    ):
        if hasattr(socket, name):
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    if listening.family == socket.AF_INET6:
        listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)


def ip_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """A host as an IP address; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def reason(error: OSError) -> str:
    """What the system said, without its number."""
    text = error.strerror or str(error)
    return os.strerror(error.errno) if error.errno and error.errno > 0 else text
