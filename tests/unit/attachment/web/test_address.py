from __future__ import annotations

from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.attachment.base import AttachmentError
from jp.attachment.web_address import Address, RedirectError, is_local, parse_address, redirected, without_credentials

CANONICAL = {
    "https://example.com/a": "https://example.com/a",
    "HTTPS://EXAMPLE.com:443": "https://example.com/",
    "http://example.com:80/A/b?C=d": "http://example.com/A/b?C=d",
    "http://example.com:/": "http://example.com/",
    "https://example.com:80/": "https://example.com:80/",
    "http://example.com:0080/": "http://example.com/",
    "https://example.com?": "https://example.com/?",
    "https://example.com#part": "https://example.com/",
    "https://example.com/a#b?c": "https://example.com/a",
    "https://u:p@example.com/@x": "https://example.com/@x",
    "https://u@v:p@example.com/": "https://example.com/",
    "https://[2001:DB8::1]:8443/x": "https://[2001:db8::1]:8443/x",
    "https://MÜNCHEN.de/straße?größe=ä b": "https://münchen.de/stra%C3%9Fe?gr%C3%B6%C3%9Fe=%C3%A4%20b",
    "https://mu\u0308nchen.de/": "https://münchen.de/",
    "https://e.org/%7ea%2fb%zz%": "https://e.org/%7Ea%2Fb%25zz%25",
    "http://a/b/../c": "http://a/c",
    "http://a/b/./c/.": "http://a/b/c/",
    "http://a/b/%2e%2E/c?d=../e": "http://a/c?d=../e",
    "http://a/../..": "http://a/",
    "http://a/b//../c": "http://a/b/c",
    "http://a//b/..": "http://a//",
    "http://a/..;x/...": "http://a/..;x/...",
    'https://e.org/a"<>b\n': "https://e.org/a%22%3C%3Eb%0A",
}


@pytest.mark.parametrize("uri", CANONICAL)
def test_an_address_has_one_spelling(uri: str) -> None:
    canonical = parse_address(uri).text

    assert canonical == CANONICAL[uri]
    assert parse_address(canonical).text == canonical


@given(st.lists(st.sampled_from(["a", "b.", "..", ".", "", "...", "%2e.", "%2E"]), min_size=1, max_size=8))
def test_dot_segments_are_resolved_as_the_standard_library_resolves_them(segments: list[str]) -> None:
    path = "/x/" + "/".join(segments)
    plain = path.replace("%2e", ".").replace("%2E", ".")

    assert parse_address(f"http://a{path}").text == urljoin("http://a/", plain)


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("http:example.com", "'http:example.com' is not a web address"),
        ("http+x://example.com", "is not a web address"),
        ("https://", "'https://' has no host"),
        ("https:///path", "'https:///path' has no host"),
        ("https://:80/", "has ':80' where host and port should be"),
        ("https://a:99999/", "has 'a:99999' where host and port should be"),
        ("https://a:b/", "has 'a:b' where host and port should be"),
        ("https://a b/", "has 'a b' where host and port should be"),
        ("https://[::1/", "where host and port should be"),
        ("https://a\\@b/", "'https:…@b/' is not a web address"),
        ("https://user:s3cret@/", "'https:…@/' has no host"),
        ("https://user:s3/cret@host/", "'https:…@host/' has '…' where host and port should be"),
        ("https://user:s3cret@ho st/", "has '…' where"),
        ("http:user:s3cret@host", "'http:…@host' is not a web address"),
    ],
)
def test_what_is_no_address_is_refused_without_its_password(uri: str, said: str) -> None:
    with pytest.raises(AttachmentError) as raised:
        parse_address(uri)

    assert said in raised.value.message
    assert "s3" not in raised.value.message
    assert "https://example.com/page" in raised.value.hint


def test_credentials_are_decoded_and_kept_apart() -> None:
    address = parse_address("https://us%40er:p%3Aw@example.com/x")

    assert address.credentials == "us@er:p:w"
    assert address.text == address.shown == "https://example.com/x"


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("https://e.org/x?a=1&access_token=abc&b=2", "https://e.org/x?a=1&access_token=…&b=2"),
        ("https://e.org/x?X-Amz-Signature=abc&API_KEY=d=e", "https://e.org/x?X-Amz-Signature=…&API_KEY=…"),
        ("https://e.org/token=1?page=2", "https://e.org/token=1?page=2"),
    ],
)
def test_what_looks_like_a_secret_is_not_shown(uri: str, shown: str) -> None:
    assert parse_address(uri).shown == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("src/main.rs", "src/main.rs"),
        ("https://u:p@h/x@y", "https://h/x@y"),
        ("https://h/x@y", "https://h/x@y"),
        ("!https://u:p@h/", "!https:…@h/"),
    ],
)
def test_what_was_written_is_shown_without_credentials(text: str, shown: str) -> None:
    assert without_credentials(text) == shown


def test_an_address_has_a_path_without_its_query() -> None:
    assert parse_address("https://e.org/a/b.py?x=/y").path == "/a/b.py"


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("/b", "https://e.org/b"),
        ("c?x#y", "https://e.org/a/c?x"),
        ("//other.org", "https://other.org/"),
        (" https://u:p@other.org/z ", "https://other.org/z"),
        ("https://e.org:8443/ü", "https://e.org:8443/%C3%BC"),
    ],
)
def test_a_redirect_leads_elsewhere_without_credentials(location: str, leads_to: str) -> None:
    target = redirected(parse_address("https://me:pw@e.org/a/b"), location)

    assert (target.text, target.credentials) == (leads_to, "")


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("", "nowhere"),
        ("http://e.org/", "'http://e.org', which is not encrypted"),
        ("file:///etc/passwd", "an address with the scheme 'file'"),
        ("javascript:alert(1)", "an address with the scheme 'javascript'"),
        ("https://[", "a malformed address"),
        ("https://a b/", "a malformed address"),
        ("https://localhost:8080/x", "'https://localhost:8080', which lies in your own network"),
        ("https://169.254.169.254/latest", "'https://169.254.169.254', which lies in your own network"),
    ],
)
def test_a_redirect_that_leads_astray_is_refused(location: str, why: str) -> None:
    with pytest.raises(RedirectError) as raised:
        redirected(parse_address("https://e.org/a"), location)

    assert str(raised.value) == why


def test_a_local_address_may_lead_to_another() -> None:
    target = redirected(parse_address("http://localhost/a"), "http://127.0.0.1:81/b")

    assert target == Address(scheme="http", host="127.0.0.1", port=81, target="/b")


@pytest.mark.parametrize(
    "host",
    ["localhost", "a.localhost", "printer.local", "127.0.0.1", "10.1.2.3", "192.168.1.1", "169.254.169.254",
     "[::1]", "[::ffff:127.0.0.1]", "[fe80::1]", "127.1", "0x7f000001", "2130706433", "localhost."],
)  # fmt: skip
def test_a_host_of_the_own_network_is_known(host: str) -> None:
    assert is_local(host)


@pytest.mark.parametrize(
    "host", ["example.com", "8.8.8.8", "[2606:4700::1]", "localhost.example.com", "münchen.de", "1e100.net"]
)
def test_a_public_host_is_none_of_the_own_network(host: str) -> None:
    assert not is_local(host)
