"""Which addresses may be connected to: over all of them, and over everything that embeds one."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

from hypothesis import example, given
from hypothesis import strategies as st

from jp.attachment.web_address import ANYWHERE, OWN_NETWORK, PUBLIC, zone_of

EDGES = st.sampled_from([
    0x00000000, 0x01010101, 0x0A000000, 0x0AFFFFFF, 0x64400000, 0x647FFFFF, 0x7F000001, 0x7FFFFFFF, 0xA9FE0000,
    0xA9FEA9FE, 0xAC100000, 0xAC1FFFFF, 0xAC200000, 0xC0000000, 0xC0A80001, 0xC6120000, 0xC6140000, 0xE0000001,
    0xF0000000, 0xFFFFFFFF, 0x08080808, 0x64646464 + 100,
])  # fmt: skip
FOURS = (st.integers(0, 2**32 - 1) | EDGES).map(IPv4Address)
PREFIXES = st.sampled_from([
    "64:ff9b:1::",
    "2001::",
    "2002::",
    "fc00::",
    "fd00::",
    "fe80::",
    "fec0::",
    "ff02::",
    "2606::",
])
LOW = st.integers(0, 2**64 - 1)
SIXES = st.integers(0, 2**128 - 1).map(IPv6Address) | st.tuples(PREFIXES, LOW).map(
    lambda drawn: IPv6Address(int(IPv6Address(drawn[0])) | drawn[1])
)


@given(address=FOURS | SIXES)
@example(address=ip_address("fec0::1"))
@example(address=ip_address("::127.0.0.1"))
@example(address=ip_address("2002:7f00:1::"))
@example(address=ip_address("64:ff9b:1::7f00:1"))
@example(address=ip_address("2606:4700::5efe:7f00:1"))
@example(address=ip_address("::ffff:0:7f00:1"))
@example(address=ip_address("fd00:ec2::254"))
@example(address=ip_address("ff0e::1"))
def test_nothing_is_public_that_python_does_not_take_for_global(address: IPv4Address | IPv6Address) -> None:
    inner = address.ipv4_mapped if isinstance(address, IPv6Address) and address.ipv4_mapped else address
    is_translated = isinstance(inner, IPv6Address) and int(inner) >> 32 == 0x64FF9B << 64
    judged = IPv4Address(int(inner) & 0xFFFFFFFF) if is_translated else inner
    if PUBLIC.allows(address):
        assert judged.is_global
        assert not any((judged.is_private, judged.is_loopback, judged.is_link_local, judged.is_multicast))
        assert not any((judged.is_unspecified, judged.is_reserved))
        if isinstance(judged, IPv6Address):
            assert not any((judged.is_site_local, judged.sixtofour, judged.teredo))
    if judged.is_loopback and judged != ip_address("::127.0.0.1"):
        assert zone_of(address) == "loopback"
    if judged.is_link_local:
        assert zone_of(address) in {"link-local", "metadata"}
        assert not OWN_NETWORK.allows(address)
    assert ANYWHERE.allows(address)


@given(address=FOURS)
def test_an_address_lies_where_what_it_embeds_lies_or_nowhere_public(address: IPv4Address) -> None:
    number = int(address)
    for forms, may_be_public in (
        ((0xFFFF << 32, 0x64FF9B << 96), True),
        ((0, 0xFFFF << 48, 0x64FF9B0001 << 80), False),
    ):
        for form in forms:
            embedding = IPv6Address(form | number)
            assert (zone_of(embedding) == "public") == (may_be_public and zone_of(address) == "public")
    sixth = IPv6Address(0x2002 << 112 | number << 80 | 1)
    assert zone_of(sixth) != "public"


@given(first=FOURS | SIXES, second=FOURS | SIXES)
def test_a_redirect_leads_to_the_public_or_stays_on_its_machine(
    first: IPv4Address | IPv6Address, second: IPv4Address | IPv6Address
) -> None:
    after = ANYWHERE.after([first])

    assert after.allows(first)
    if after.allows(second):
        assert first == second or zone_of(second) == "public" or zone_of(first) == zone_of(second) == "loopback"
