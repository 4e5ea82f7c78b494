"""Which addresses of the Internet protocol may be connected to: each one is in a zone, and a reach is a set of zones.

A name says nothing about where it leads, so what is judged is what it resolves to, and what an IPv6 address embeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal

import msgspec

IpAddress = IPv4Address | IPv6Address

Zone = Literal["public", "loopback", "private", "link-local", "metadata", "reserved"]
"""Where an address lies. `metadata` is where a cloud tells its machines their credentials; `reserved` is the rest."""

_METADATA = frozenset(
    map(ip_address, ("169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "192.0.0.192"))
) | frozenset(map(ip_address, ("168.63.129.16", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254")))
_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_LINK_LOCAL = (IPv4Network("169.254.0.0/16"), IPv6Network("fe80::/10"))
_PRIVATE = (
    *map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")),
    IPv4Network("100.64.0.0/10"),  # shared by the customers of a provider, and by some virtual private networks
    IPv4Network("198.18.0.0/15"),  # given out by some local proxies in place of every address
    IPv6Network("fc00::/7"),
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_NOT_GLOBAL = (
    # Python before 3.11.10 takes some of these for global.
    *map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/4", "240.0.0.0/4")),
    *map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")),
)
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What may be connected to: addresses in `zones`, and those of `machines`."""

    zones: frozenset[Zone]
    machines: frozenset[IpAddress] = frozenset()

    def allows(self, address: IpAddress) -> bool:
        """Whether `address` may be connected to."""
        return zone_of(address) in self.zones or address in self.machines

    def after(self, addresses: Iterable[IpAddress]) -> Reach:
        """Return how far a server may redirect that was found at `addresses`: to the public, and to its own machine."""
        machines = frozenset(address for address in addresses if zone_of(address) != "public")
        if any(zone_of(address) == "loopback" for address in machines):
            return Reach(zones=frozenset({"public", "loopback"}), machines=machines)
        return Reach(zones=PUBLIC.zones, machines=machines)


PUBLIC = Reach(zones=frozenset({"public"}))
"""Nothing but what everybody can reach."""

OWN_NETWORK = Reach(zones=frozenset({"public", "loopback", "private"}))
"""Also this machine and its private network, but nothing that speaks to the machine itself about its credentials."""

ANYWHERE = Reach(zones=frozenset({"public", "loopback", "private", "link-local", "metadata", "reserved"}))
"""For an address that a person has written as numbers."""


def zone_of(address: IpAddress) -> Zone:
    """Return where `address` lies; one that embeds another lies where that does, or nowhere public."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return zone_of(address.ipv4_mapped)
        if address in _NAT64:
            return zone_of(IPv4Address(int(address) & 0xFFFF_FFFF))
    if address in _METADATA:
        return "metadata"
    zones: tuple[tuple[Zone, tuple[IPv4Network | IPv6Network, ...]], ...] = (
        ("loopback", _LOOPBACK),
        ("link-local", _LINK_LOCAL),
        ("private", _PRIVATE),
    )
    for zone, networks in zones:
        if _is_in(address, networks):
            return zone
    return "public" if _is_public(address) else "reserved"


def _is_public(address: IpAddress) -> bool:
    if not address.is_global or address.is_multicast or address.is_unspecified or _is_in(address, _NOT_GLOBAL):
        return False
    if isinstance(address, IPv4Address):
        return True
    # ISATAP tunnels to the IPv4 address in its last bits.
    return address in _GLOBAL_UNICAST and (int(address) >> 32) & 0xFFFF_FFFF not in _ISATAP


def _is_in(address: IpAddress, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    return any(address in network for network in networks if network.version == address.version)
