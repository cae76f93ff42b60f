"""The addresses that a fetch may connect to: public ones, whatever name or notation leads there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from crow import CrowError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

UNICAST = IPv6Network("2000::/3")
TRANSLATED = IPv6Network("64:ff9b::/96")
LOCAL, LOOPBACK = "localhost", IPv4Address("127.0.0.1")
METADATA = frozenset(map(IPv4Address, ("168.63.129.16", "192.0.0.192")))
"""Services of a cloud's hosts, at addresses that count as public."""


class AddressError(CrowError):
    """A name leads nowhere, or where a fetch must not go."""


async def addresses(
    host: str, port: int, resolve: Resolve, allowed: Iterable[Network]
) -> list[Address]:
    """Where to connect to for a host. Raises `AddressError` where any address must not be reached.

    ``allowed`` are networks that may be reached though they are not public.
    """
    try:
        found = [ip_address(each) for each in await resolve(host, port)]
    except (OSError, ValueError) as error:
        raise AddressError(f"the host {host} is not known") from error
    if not found:
        raise AddressError(f"the host {host} has no address")
    demand_public(host, found, allowed)
    return found


def demand_public(host: str, found: Iterable[Address], allowed: Iterable[Network]) -> None:
    """Raise `AddressError` where a host leads to an address that must not be reached."""
    networks = list(allowed)
    for address in found:
        if not is_public(address) and not any(address in network for network in networks):
            raise AddressError(f"{host} leads to {address}, which is no public address")


def spelled_out(host: str) -> list[Address]:
    """The address that a host's name says by itself; none where it has to be looked up."""
    name = host.rstrip(".").lower()
    if name == LOCAL or name.endswith(f".{LOCAL}"):
        return [LOOPBACK]
    try:
        return [ip_address(name)]
    except ValueError:
        return []


def is_public(address: Address) -> bool:
    """True for an address that anybody on the internet reaches.

    Of one that carries another (IPv4 in IPv6, 6to4, Teredo, NAT64) the inner one must be public,
    too.
    """
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and address not in METADATA
    inner = _inner(address)
    if address in TRANSLATED or address.ipv4_mapped is not None:
        return all(map(is_public, inner))
    return address in UNICAST and address.is_global and all(map(is_public, inner))


def _inner(address: IPv6Address) -> list[IPv4Address]:
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in TRANSLATED:
        found.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [each for each in found if each is not None]


def networks(written: bool | Iterable[str]) -> list[Network]:
    """Networks as options name them; True means all. Raises ``ValueError``."""
    if isinstance(written, bool):
        written = ("0.0.0.0/0", "::/0") if written else ()
    return [ip_network(each) for each in written]
