"""Addresses of `http` and `https`: their canonical form, and the networks that they may reach."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal
from urllib.parse import quote, unquote, urljoin

import msgspec

from jp.attachment.base import AttachmentError
from jp.remedies import Ask, phrase

IpAddress = IPv4Address | IPv6Address

Zone = Literal["public", "loopback", "private", "link-local", "metadata", "reserved"]
"""Zones of IP addresses. `metadata` is a cloud's credentials service; `reserved` is the rest."""

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


class NetworkScope(msgspec.Struct, frozen=True, kw_only=True):
    """IP addresses that jp may connect to: those in `zones`, and those in `machines`."""

    zones: frozenset[Zone]
    machines: frozenset[IpAddress] = frozenset()

    def allows(self, address: IpAddress) -> bool:
        """Return whether jp may connect to `address`."""
        return zone_of(address) in self.zones or address in self.machines

    def after(self, addresses: Iterable[IpAddress]) -> NetworkScope:
        """Return the scope of a redirect from a server at `addresses`: public addresses, and the server's own."""
        machines = frozenset(address for address in addresses if zone_of(address) != "public")
        if any(zone_of(address) == "loopback" for address in machines):
            return NetworkScope(zones=frozenset({"public", "loopback"}), machines=machines)
        return NetworkScope(zones=PUBLIC.zones, machines=machines)


PUBLIC = NetworkScope(zones=frozenset({"public"}))
"""Public addresses only."""

OWN_NETWORK = NetworkScope(zones=frozenset({"public", "loopback", "private"}))
"""Also this machine and its private network, but no credentials service."""

ANYWHERE = NetworkScope(zones=frozenset({"public", "loopback", "private", "link-local", "metadata", "reserved"}))
"""For an IP address that the user typed."""


def zone_of(address: IpAddress) -> Zone:
    """Return the zone of `address`; one that embeds another address has that one's zone, or is not public."""
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


_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#\\]*)(?P<path>(?:/[^?#]*)?)(?:\?(?P<query>[^#]*))?(?:#.*)?",
    re.IGNORECASE | re.DOTALL,
)
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s\[\]:\\<>%\"^`{|}\x00-\x1f\x7f]+)(?::(?P<port>[0-9]{0,5}))?")
_TRIPLET = re.compile(r"%[0-9A-Fa-f]{2}")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LAST_PORT = 65_535

# RFC 3986 §3.3 and §3.4, and what servers are sent raw by everybody: `|`, `[`, `]`.
_PATH_SAFE = "/:@!$&'()*+,;=~%[]|"
_QUERY_SAFE = _PATH_SAFE + "?"

_SECRET = re.compile(
    r"(?i)(?P<name>[^&=]*(?:token|secret|passw|pwd|key|sig|auth|credential|session|jwt)[^&=]*)=(?P<value>[^&]+)"
)
_WITHIN = "…"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed address. `target` is path and query; `port` is None for the scheme's default.

    `credentials` (`user:password`, decoded) are not part of its identity, and no text contains them.
    """

    scheme: Literal["http", "https"]
    host: str
    port: int | None
    target: str
    credentials: str = ""

    @property
    def text(self) -> str:
        """Return the canonical form: without credentials and fragment."""
        return f"{self.origin}{self.target}"

    @property
    def origin(self) -> str:
        """Return scheme, host and port."""
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"

    @property
    def path(self) -> str:
        """Return the path, without the query; it begins with a slash."""
        return self.target.partition("?")[0]

    @property
    def shown(self) -> str:
        """Return the canonical form for errors and notices, without values that look like secrets."""
        path, mark, query = self.target.partition("?")
        return f"{self.origin}{path}{mark}{_SECRET.sub(_hidden, query)}"


BY_HAND = phrase("`curl ADDRESS | ", Ask(is_open=True), "` attaches it in your own way")
RETRY = phrase("Try again, or fetch it yourself: ", BY_HAND, ".")
_FETCH = phrase("Fetch it yourself: ", BY_HAND, ".")


def failure(address: Address, what: str, hint: str = _FETCH) -> AttachmentError:
    """Return the error of an attachment: its address, then `what` happened."""
    return AttachmentError(f"{address.shown!r} {what}", hint=hint)


class RedirectError(Exception):
    """A redirect that is not followed. Its text completes `… redirects to {text}`."""


def _hidden(match: re.Match[str]) -> str:
    return f"{match['name']}={_WITHIN}"


def parse_address(uri: str) -> Address:
    """Parse and normalize `uri`.

    Scheme and host become lower case, a default port and the fragment are removed, an empty path becomes `/`, dot
    segments are resolved, and characters that no URI can contain are percent-encoded as UTF-8.

    Raises:
        AttachmentError: `uri` is malformed. The message contains no credentials.
    """
    match = _ADDRESS.fullmatch(uri)
    if match is None:
        hint = "write it as 'https://example.com/page'"
        raise AttachmentError(f"{without_credentials(uri)!r} is not a web address", hint=hint)
    credentials, _, place = match["authority"].rpartition("@")
    host = _HOST.fullmatch(place)
    if host is None or int(host["port"] or 0) > _LAST_PORT:
        shown = _WITHIN if "@" in uri else place
        fault = f"has {shown!r} where host and port should be" if place else "has no host"
        raise AttachmentError(f"{without_credentials(uri)!r} {fault}", hint="write it as 'https://example.com/page'")
    scheme: Literal["http", "https"] = "https" if match["scheme"].lower() == "https" else "http"
    port = int(host["port"] or _DEFAULT_PORTS[scheme])
    query = match["query"]
    return Address(
        scheme=scheme,
        host=_composed(host["host"]).lower(),
        port=None if port == _DEFAULT_PORTS[scheme] else port,
        target=_without_dot_segments(_encoded(match["path"] or "/", _PATH_SAFE))
        + ("" if query is None else f"?{_encoded(query, _QUERY_SAFE)}"),
        credentials=unquote(credentials),
    )


def _composed(host: str) -> str:
    if host.isascii():
        return host
    from unicodedata import normalize

    return normalize("NFC", host)


def _encoded(text: str, safe: str) -> str:
    whole = _STRAY_PERCENT.sub("%25", text)
    return _TRIPLET.sub(lambda match: match[0].upper(), quote(whole, safe=safe, errors="surrogateescape"))


def _without_dot_segments(path: str) -> str:
    """Return `path` as RFC 3986 §5.2.4 resolves it; `%2E` is a dot, as servers and browsers read it.

    `urljoin` reads a path that begins with `//` as a host, and cuts `..;x` into `..` and a parameter.
    """
    kept: list[str] = []
    dots = ""
    for segment in path.split("/")[1:]:
        dots = segment.replace("%2E", ".")
        if dots == "..":
            del kept[-1:]
        elif dots != ".":
            kept.append(segment)
    if dots in {".", ".."}:
        kept.append("")
    return f"/{'/'.join(kept)}"


def without_credentials(text: str) -> str:
    """Return what the user wrote without anything that may be a name and a password."""
    if "@" not in text:
        return text
    match = _ADDRESS.fullmatch(text)
    authority, place = (match["authority"], match["authority"].rpartition("@")[2]) if match else ("", "")
    if _HOST.fullmatch(place):
        return text.replace(f"//{authority}", f"//{place}", 1)
    # In a malformed address, the end of the password is unknown.
    return f"{text.partition(':')[0]}:{_WITHIN}@{text.rpartition('@')[2]}"


def redirected(address: Address, location: str) -> Address:
    """Return the target of a redirect from `address`, without credentials.

    Raises:
        RedirectError: the target is malformed, has another scheme, gives up encryption, or lies in the user's own
            network although `address` does not.
    """
    if not location:
        raise RedirectError("nowhere")
    try:
        joined = urljoin(address.text, location.strip())
    except ValueError:
        raise RedirectError("a malformed address") from None
    scheme = joined.partition(":")[0].lower()
    if scheme not in _DEFAULT_PORTS:
        raise RedirectError(f"an address with the scheme {scheme!r}")
    try:
        target = parse_address(joined)
    except AttachmentError:
        raise RedirectError("a malformed address") from None
    if address.scheme == "https" and target.scheme == "http":
        raise RedirectError(f"{target.origin!r}, which is not encrypted")
    if is_local(target.host) and not is_local(address.host):
        raise RedirectError(f"{target.origin!r}, which lies in your own network")
    return msgspec.structs.replace(target, credentials="")


def is_local(host: str) -> bool:
    """Return whether the name of a host is that of this machine, or of one in a private network."""
    name = host.strip("[]").rstrip(".")
    if name == "localhost" or name.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ip_address(name).is_global
    except ValueError:
        return is_numeric(host)


def is_numeric(host: str) -> bool:
    """Return whether a host is an IP address; the system reads `127.1` and `0x7f000001` as such."""
    return host.startswith("[") or host.rstrip(".").rpartition(".")[2][:1].isdigit()
