"""The addresses of `http` and `https`: their canonical form, what of them may be shown, where they may lead. Pure."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import quote, unquote, urljoin

import msgspec

from jp.attachment.base import AttachmentError

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
    """An address taken apart. `target` is path and query; `port` is None where it is the scheme's own.

    `credentials` (`user:password`, decoded) are no part of its identity, and in no text.
    """

    scheme: Literal["http", "https"]
    host: str
    port: int | None
    target: str
    credentials: str = ""

    @property
    def text(self) -> str:
        """The canonical form: without credentials and fragment."""
        return f"{self.origin}{self.target}"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"

    @property
    def path(self) -> str:
        """The path, without the query; it begins with a slash."""
        return self.target.partition("?")[0]

    @property
    def shown(self) -> str:
        """The canonical form without what looks like a secret: for errors and notices."""
        path, mark, query = self.target.partition("?")
        return f"{self.origin}{path}{mark}{_SECRET.sub(_hidden, query)}"


class RedirectError(Exception):
    """A redirect that is not followed; the text says what it is: `… redirects to {text}`."""


def _hidden(match: re.Match[str]) -> str:
    return f"{match['name']}={_WITHIN}"


def parse_address(uri: str) -> Address:
    """Take `uri` apart.

    Scheme and host become lower case, a default port and the fragment go, an empty path becomes `/`, dot segments are
    resolved. What no URI can hold is percent-encoded as UTF-8.

    Raises:
        AttachmentError: it is malformed. Its text holds no credentials.
    """
    match = _ADDRESS.fullmatch(uri)
    if match is None:
        hint = "Write it as 'https://example.com/page'."
        raise AttachmentError(f"{without_credentials(uri)!r} is no address of the web", hint=hint)
    credentials, _, place = match["authority"].rpartition("@")
    host = _HOST.fullmatch(place)
    if host is None or int(host["port"] or 0) > _LAST_PORT:
        shown = _WITHIN if "@" in uri else place
        fault = f"has {shown!r} where host and port should be" if place else "has no host"
        raise AttachmentError(f"{without_credentials(uri)!r} {fault}", hint="Write it as 'https://example.com/page'.")
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
    """What a user wrote, as it may be shown: everything that may be a name and a password is left out."""
    if "@" not in text:
        return text
    match = _ADDRESS.fullmatch(text)
    authority, place = (match["authority"], match["authority"].rpartition("@")[2]) if match else ("", "")
    if _HOST.fullmatch(place):
        return text.replace(f"//{authority}", f"//{place}", 1)
    # In an address that is malformed, who knows where a password ends.
    return f"{text.partition(':')[0]}:{_WITHIN}@{text.rpartition('@')[2]}"


def redirected(address: Address, location: str) -> Address:
    """Where a server's answer to `address` leads, credentials left out.

    Raises:
        RedirectError: what it names is malformed, of another scheme, not encrypted where `address` was, or in the
            network of the user, where `address` was not: a page is not to look around there.
    """
    if not location:
        raise RedirectError("nowhere")
    try:
        joined = urljoin(address.text, location.strip())
    except ValueError:
        raise RedirectError("an address that is malformed") from None
    scheme = joined.partition(":")[0].lower()
    if scheme not in _DEFAULT_PORTS:
        raise RedirectError(f"an address of the scheme {scheme!r}")
    try:
        target = parse_address(joined)
    except AttachmentError:
        raise RedirectError("an address that is malformed") from None
    if address.scheme == "https" and target.scheme == "http":
        raise RedirectError(f"{target.origin!r}, which is not encrypted")
    if is_local(target.host) and not is_local(address.host):
        raise RedirectError(f"{target.origin!r}, which lies in your own network")
    return msgspec.structs.replace(target, credentials="")


def is_local(host: str) -> bool:
    """Whether a host, by its name alone, is this machine or one of a private network."""
    from ipaddress import ip_address

    name = host.strip("[]").rstrip(".")
    if name == "localhost" or name.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ip_address(name).is_global
    except ValueError:
        return is_numeric(host)


def is_numeric(host: str) -> bool:
    """Whether a host is written as an address, not as a name; `127.1` and `0x7f000001` are addresses to the system."""
    return host.startswith("[") or host.rstrip(".").rpartition(".")[2][:1].isdigit()
