"""What a server of the web may do to whom attaches it: redirects, lies, bombs, silence, TLS."""

from __future__ import annotations

import gzip
import hashlib
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
import trustme
from cryptography import x509

from jp.attachment import web_client, web_page
from jp.attachment.base import AttachmentError, Resolution, ResolveContext
from jp.attachment.media import ContentType
from jp.attachment.registry import AttachmentRegistry
from jp.attachment.web import AT_ONCE, HttpHandler
from jp.attachment.web_address import Address, NetworkScope
from jp.attachment.web_client import FetchLimits, WebResponse
from jp.conversation.resource import Annotations, Resource
from loopback import HTML, JSON, PATIENCE, Loopback, Received, Reply

TEXT = (("content-type", "text/plain; charset=utf-8"),)
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
MAX_BYTES = 10 * 1024 * 1024
PNG = b"\x89PNG\r\n\x1a\n...."


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *map(str.upper, PROXIES), "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


def resolution(
    url: str,
    *,
    max_bytes: int = MAX_BYTES,
    confined: bool = False,
    exclude: str = "",
    limits: FetchLimits | None = None,
) -> Resolution:
    context = ResolveContext(root=Path("/"), cwd=Path("/"), max_bytes=max_bytes)
    registry = AttachmentRegistry()
    declaration = registry.declare(url, context, confined=confined)
    excludes = [registry.declare(exclude, context, confined=False)] if exclude else []
    handler = HttpHandler(limits)

    async def resolve() -> Resolution:
        with anyio.fail_after(PATIENCE):
            return await handler.resolve(declaration, context, excludes=excludes)

    return anyio.run(resolve)


def attached(url: str, *, max_bytes: int = MAX_BYTES) -> Resource:
    (resource,) = resolution(url, max_bytes=max_bytes).resources
    return resource


def failure(
    url: str, *, max_bytes: int = MAX_BYTES, confined: bool = False, limits: FetchLimits | None = None
) -> AttachmentError:
    with pytest.raises(AttachmentError) as raised:
        resolution(url, max_bytes=max_bytes, confined=confined, limits=limits)
    assert raised.value.exit_code == 10
    assert raised.value.hint
    return raised.value


def redirect(location: str, status: int = 302) -> Reply:
    return Reply(status=status, headers=(("location", location),), body=b"moved")


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


# What comes


def test_text_is_attached_as_it_is() -> None:
    with Loopback(Reply(body="für\n".encode(), headers=TEXT)) as server:
        resource = attached(f"{server.url}/a.txt?x=1#part")
        (request,) = server.requests

    uri = f"{server.url}/a.txt?x=1"
    assert resource == Resource(uri=uri, name=uri, mime_type="text/plain", text="für\n")
    assert (request.method, request.target) == ("GET", "/a.txt?x=1")
    assert request.headers["user-agent"].startswith("jp/")
    assert "authorization" not in request.headers


def test_a_page_is_attached_as_markdown() -> None:
    web_page = b"<title>Title</title><h1>Head</h1><p>See <a href=b>this</a>"
    with Loopback(Reply(body=web_page, headers=HTML)) as server:
        resource = attached(f"{server.url}/docs/a")

    assert resource.mime_type == "text/markdown"
    assert resource.title == "Title"
    assert resource.text == f"# Head\n\nSee [this]({server.url}/docs/b)"


def test_a_page_that_is_nested_too_deeply_is_attached_as_its_text() -> None:
    with Loopback(Reply(body=b"<div>" * 2000 + b"deep", headers=HTML)) as server:
        result = resolution(server.url)

    assert [(each.mime_type, each.text) for each in result.resources] == [("text/plain", "deep")]
    assert "nested too deeply" in result.notices[0]


def test_a_page_with_too_much_markup_is_attached_as_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_page, "MOST_TAGS", 500)
    with Loopback(Reply(body=b"<title>t</title>" + b"<p>" * 1000 + b"x", headers=HTML)) as server:
        result = resolution(server.url)

    assert [(each.mime_type, each.title, each.text) for each in result.resources] == [("text/plain", "t", "x")]
    assert result.notices == (
        f"'{server.url}/' is nested too deeply or has too much markup for Markdown; its bare text is attached",
    )


@pytest.mark.parametrize("body", [b"", b"<body></body>", b"<script>show()</script><div id=app></div>"])
def test_a_page_of_which_nothing_remains_is_refused(body: bytes) -> None:
    with Loopback(Reply(body=body, headers=HTML)) as server:
        error = failure(server.url)

    assert error.message == f"'{server.url}/' is a page that has no text"
    assert "scripts" in error.hint


def test_a_page_without_text_is_its_title_and_says_so() -> None:
    with Loopback(Reply(body=b"<title>App</title><script>show()</script>", headers=HTML)) as server:
        result = resolution(server.url)

    assert [each.text for each in result.resources] == ["App"]
    assert result.notices == (f"the page at '{server.url}/' has no text; its title is attached",)


def test_a_text_that_is_empty_says_so() -> None:
    with Loopback(Reply(body=b"", headers=TEXT)) as server:
        result = resolution(server.url)

    assert [each.text for each in result.resources] == [""]
    assert result.notices == (f"'{server.url}/' is empty",)


def test_a_picture_is_attached_as_it_is() -> None:
    with Loopback(Reply(body=PNG, headers=(("content-type", "image/png"),))) as server:
        resource = attached(server.url)

    assert (resource.mime_type, resource.blob, resource.text) == ("image/png", PNG, None)


@pytest.mark.parametrize(
    ("header", "moment"),
    [
        ("Wed, 21 Oct 2015 07:28:00 GMT", "2015-10-21T07:28:00Z"),
        ("Wed, 21 Oct 2015 07:28:00 +0200", "2015-10-21T05:28:00Z"),
        ("Wed, 21 Oct 2015 07:28:00 -0000", "2015-10-21T07:28:00Z"),
        ("yesterday", None),
        ("Wed, 21 Oct 99999 07:28:00 GMT", None),
        ("", None),
    ],
)
def test_a_resource_says_when_it_was_changed(header: str, moment: str | None) -> None:
    with Loopback(Reply(body=b"x", headers=(*TEXT, ("last-modified", header)))) as server:
        resource = attached(server.url)

    assert resource.annotations == (None if moment is None else Annotations(last_modified=moment))


def test_what_is_not_valid_is_replaced_and_said() -> None:
    with Loopback(Reply(body=b"f\xfcr", headers=TEXT)) as server:
        result = resolution(f"{server.url}/?token=abc")

    assert result.resources[0].text == "f\ufffdr"
    assert result.notices == (f"'{server.url}/?token=…' is not valid UTF-8; what does not fit was replaced",)


def test_an_excluded_address_is_not_fetched() -> None:
    with Loopback() as server:
        result = resolution(server.url, exclude=f"!{server.url}/#x")

        assert not server.requests
    assert result.resources == ()
    assert "excluded" in result.notices[0]


# Types and sizes


@pytest.mark.parametrize("header", ["video/mp4", "application/zip", "application/msword"])
def test_a_type_that_no_model_reads_is_refused_before_it_is_read(header: str) -> None:
    with Loopback(Reply(body=b"x", headers=(("content-type", header),), ends="hang")) as server:
        error = failure(server.url)

        assert server.client_left.wait(PATIENCE)
    assert error.message == f"'{server.url}/' is of the type {header!r}"
    assert "can be attached" in error.hint


def test_content_that_is_not_what_it_says_is_refused() -> None:
    with Loopback(Reply(body=b"no", headers=(("content-type", "image/png"),))) as server:
        error = failure(server.url)

    assert error.message == f"'{server.url}/' is no 'image/png', though its server says so"


def test_fifty_megabytes_are_left_at_ten() -> None:
    with Loopback(Reply(body=b"x" * 65536, times=800, headers=TEXT)) as server:
        error = failure(server.url)

        assert server.client_left.wait(PATIENCE)
    assert "has more than 10.0 MiB" in error.message
    assert "max_attachment_bytes" in error.hint


def test_a_bomb_is_left_before_it_has_gone_off() -> None:
    bomb = gzip.compress(bytes(12_000_000))
    with Loopback(Reply(body=bomb, headers=(*TEXT, ("content-encoding", "gzip")), ends="hang")) as server:
        error = failure(server.url)

        assert server.client_left.wait(PATIENCE)
    assert "has more than 10.0 MiB" in error.message


def test_the_bound_is_for_what_is_unpacked() -> None:
    packed = Reply(body=gzip.compress(b"x" * 1000, mtime=0), headers=(*TEXT, ("content-encoding", "gzip")))
    with Loopback(packed, packed) as server:
        assert attached(server.url, max_bytes=1000).text == "x" * 1000
        assert "more than 999 bytes" in failure(server.url, max_bytes=999).message


def test_a_page_whose_markdown_is_over_the_bound_is_refused() -> None:
    web_page = b"<blockquote>" * 100 + b"<br>x" * 60
    with Loopback(Reply(body=web_page, headers=HTML)) as server:
        assert "comes to more than 9.8 KiB as Markdown" in failure(server.url, max_bytes=10_000).message


def test_a_length_that_is_too_short_ends_the_text() -> None:
    with Loopback(Reply(body=b"hello", headers=(*TEXT, ("content-length", "4")), ends="close")) as server:
        assert attached(server.url).text == "hell"


def test_a_length_that_is_too_long_breaks_it_off() -> None:
    with Loopback(Reply(body=b"hello", headers=(*TEXT, ("content-length", "50000000")), ends="close")) as server:
        assert "broke off" in failure(server.url).message


@pytest.mark.parametrize(
    ("encoding", "body", "said"),
    [
        ("br", b"x", "came as 'br', which was not asked for"),
        ("gzip", b"x", "is damaged or incomplete"),
        ("gzip", gzip.compress(b"x" * 1000, mtime=0)[:-4], "is damaged or incomplete"),
    ],
)
def test_what_cannot_be_unpacked_is_refused(encoding: str, body: bytes, said: str) -> None:
    with Loopback(Reply(body=body, headers=(*TEXT, ("content-encoding", encoding)))) as server:
        assert said in failure(server.url).message


# Redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed_and_the_address_stays_the_declared_one(status: int) -> None:
    web_page = Reply(body=b"<a href=c>l</a>", headers=HTML)
    with Loopback(redirect("/deep/b", status), web_page) as server:
        resource = attached(f"{server.url}/a")
        targets = [request.target for request in server.requests]

    assert targets == ["/a", "/deep/b"]
    assert resource.uri == f"{server.url}/a"
    assert resource.text == f"[l]({server.url}/deep/c)"


def test_a_redirect_to_another_server_takes_no_credentials_along() -> None:
    with Loopback(Reply(body=b"x", headers=TEXT)) as other, Loopback(redirect(other.url)) as server:
        attached(server.url.replace("//", "//me:pw@"))

        assert server.requests[0].headers["authorization"] == "Basic bWU6cHc="
        assert "authorization" not in other.requests[0].headers


@pytest.mark.parametrize("targets", [["/a"], ["/b", "/a"], ["/b", "/c", "/b"], ["/b", "/b#x"]])
def test_redirects_in_a_circle_are_left(targets: list[str]) -> None:
    with Loopback(*map(redirect, targets)) as server:
        error = failure(f"{server.url}/a")

        assert len(server.requests) == len(targets)
    assert error.message == f"'{server.url}/a' redirects in a circle"


def test_redirects_without_end_are_left() -> None:
    def onward(request: Received) -> Reply:
        return redirect(request.target + "x")

    with Loopback(otherwise=onward) as server:
        error = failure(f"{server.url}/")

        assert len(server.requests) == 11
    assert "redirects more than 10 times" in error.message


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("", "redirects to nowhere"),
        ("file:///etc/passwd", "redirects to an address with the scheme 'file'"),
        ("http://[", "redirects to a malformed address"),
    ],
)
def test_a_redirect_that_leads_nowhere_is_refused(location: str, said: str) -> None:
    with Loopback(redirect(location)) as server:
        assert said in failure(server.url).message


# Refusals, silence, and what breaks


@pytest.mark.parametrize(
    ("reply", "said", "hint"),
    [
        (Reply(status=404), "answered 404 Not Found", "check the address"),
        (Reply(status=401), "answered 401 Unauthorized", "curl"),
        (Reply(status=429, headers=(("retry-after", "30"),)), "answered 429 Too Many Requests", "Try again in 30 s"),
        (Reply(status=503), "answered 503 Service Unavailable", "Try again later"),
        (Reply(status=204, headers=(("content-length", "0"),)), "answered 204 No Content", "curl"),
        (Reply(status=304, headers=(("content-length", "0"),)), "answered 304 Not Modified", "curl"),
        (Reply(status=799), "answered 799", "Try again later"),
    ],
)
def test_a_refusal_is_told(reply: Reply, said: str, hint: str) -> None:
    with Loopback(reply) as server:
        error = failure(f"{server.url}/x?key=abc")

    assert error.message == f"'{server.url}/x?key=…' {said}"
    assert hint in error.hint


def test_a_refusal_after_a_redirect_names_who_refused() -> None:
    with (
        Loopback(Reply(status=403)) as other,
        Loopback(redirect(other.url.replace("127.0.0.1", "localhost"))) as server,
    ):
        assert "answered 403 Forbidden at 'localhost'" in failure(server.url).message


def test_a_refused_connection_is_told() -> None:
    error = failure(f"http://127.0.0.1:{closed_port()}/x")

    assert "/x': no connection to '127.0.0.1': Connection refused" in error.message


def test_a_host_that_cannot_be_found_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)

    assert "'nowhere.test' cannot be found: Name or service not known" in failure("http://nowhere.test").message


@pytest.mark.parametrize("host", ["a..b", "xn--a", "\u2100.org", "-", "x" * 300])
def test_a_host_that_cannot_be_one_is_told(host: str) -> None:
    error = failure(f"http://{host}:{closed_port()}/")

    assert "cannot be" in error.message


@pytest.mark.parametrize("ends", ["close", "reset"])
def test_a_connection_that_is_dropped_before_an_answer_is_told(ends: str) -> None:
    reply = Reply(headless=True, ends="close") if ends == "close" else Reply(headless=True, ends="reset")
    with Loopback(reply) as server:
        assert "the connection to '127.0.0.1' broke off" in failure(server.url).message


@pytest.mark.parametrize("ends", ["close", "reset"])
def test_a_connection_that_is_dropped_in_an_answer_is_told(ends: str) -> None:
    half = Reply(body=b"half", headers=TEXT, ends="close") if ends == "close" else Reply(headers=TEXT, ends="reset")
    with Loopback(half) as server:
        assert "broke off" in failure(server.url).message


@pytest.mark.parametrize("reply", [Reply(headless=True, ends="hang"), Reply(body=b"x", headers=TEXT, ends="hang")])
def test_a_server_that_falls_silent_is_left(reply: Reply) -> None:
    with Loopback(reply) as server:
        error = failure(server.url, limits=FetchLimits(idle_secs=0.05))

        assert server.client_left.wait(PATIENCE)
    assert "was silent for too long" in error.message


def test_a_connection_that_is_not_made_in_time_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(anyio, "connect_tcp", never)

    assert (
        "no connection to '127.0.0.1' in time"
        in failure("http://127.0.0.1:9", limits=FetchLimits(connect_secs=0.05)).message
    )


def test_a_slow_body_is_waited_for() -> None:
    gate = threading.Event()
    with Loopback(Reply(body=b"slow body", headers=TEXT, gates={5: gate})) as server:
        threading.Thread(target=lambda: (server.wait_for_requests(1), gate.set())).start()

        assert attached(server.url).text == "slow body"


def test_everything_together_has_an_end() -> None:
    gate = threading.Event()
    with Loopback(Reply(body=b"slow body", headers=TEXT, gates={5: gate})) as server:
        error = failure(server.url, limits=FetchLimits(total_secs=0.1))
        gate.set()

    assert "was not complete after 0.1 s" in error.message


def test_a_page_that_takes_too_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def read(*_: object, check: Callable[[], None], **__: object) -> None:
        gate.wait(PATIENCE)
        check()

    monkeypatch.setattr(web_page, "read_page", read)
    with Loopback(Reply(body=b"<p>x</p>", headers=HTML)) as server:
        error = failure(server.url, limits=FetchLimits(total_secs=0.5))
        gate.set()

    assert error.message == (
        f"'{server.url}/' was fetched, but converting it to Markdown was not done after 0.5 s in all"
    )


def test_what_is_no_http_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-x\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        error = failure(f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join()

    assert "broke off" in error.message


def test_cancelling_closes_the_connection() -> None:
    context = ResolveContext(root=Path("/"), cwd=Path("/"))

    async def leave(server: Loopback) -> None:
        registry = AttachmentRegistry()
        declaration = registry.declare(server.url, context, confined=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(registry.handler(declaration.uri).resolve, declaration, context)
            await anyio.to_thread.run_sync(server.wait_for_requests, 1)
            tasks.cancel_scope.cancel()

    with Loopback(Reply(body=b"x", headers=TEXT, ends="hang")) as server:
        anyio.run(leave, server)

        assert server.client_left.wait(PATIENCE)


def test_several_are_fetched_at_once_but_not_all(monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[int] = []
    active = 0

    async def fetch(address: Address, limits: FetchLimits, max_bytes: int, reach: NetworkScope) -> WebResponse:
        nonlocal active
        active += 1
        running.append(active)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        active -= 1
        text = ContentType(mime_type="text/plain")
        return WebResponse(address=address, status=200, content_type=text, last_modified="", body=b"")

    monkeypatch.setattr(web_client, "fetch", fetch)
    context = ResolveContext(root=Path("/"), cwd=Path("/"))

    async def resolve() -> None:
        registry = AttachmentRegistry()
        async with anyio.create_task_group() as tasks:
            for number in range(AT_ONCE * 2):
                uri = f"http{'s' * (number % 2)}://e.org/{number}"
                declaration = registry.declare(uri, context, confined=False)
                tasks.start_soon(registry.handler(uri).resolve, declaration, context)

    anyio.run(resolve)

    assert len(running) == AT_ONCE * 2
    assert max(running) == AT_ONCE


# Credentials


def test_credentials_that_were_typed_are_sent_and_not_kept() -> None:
    with Loopback(Reply(body=b"x", headers=TEXT)) as server:
        resource = attached(server.url.replace("//", "//us%40er:p%3Aw@") + "/x")

        assert server.requests[0].headers["authorization"] == "Basic dXNAZXI6cDp3"
    assert resource.uri == resource.name == f"{server.url}/x"


def test_credentials_in_a_file_are_refused() -> None:
    with Loopback() as server:
        error = failure(server.url.replace("//", "//user:s3cret@"), confined=True)

        assert not server.requests
    assert "would be stored with the conversation" in error.message
    assert "s3cret" not in error.message + error.hint


def test_no_failure_tells_credentials() -> None:
    with Loopback(Reply(status=403), redirect("http://user:s3cret@[/")) as server:
        for _ in range(2):
            error = failure(server.url.replace("//", "//user:s3cret@"))
            assert "s3cret" not in error.message + error.hint


# TLS and proxies


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued = authority.issue_cert("127.0.0.1")
    pem = tmp_path_factory.mktemp("tls") / "server.pem"
    pem.write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    context.load_cert_chain(pem)
    return context


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))


@pytest.mark.usefixtures("trusted")
def test_a_private_authority_is_trusted(tls: ssl.SSLContext) -> None:
    with Loopback(Reply(body=b"{}", headers=JSON), tls=tls) as server:
        assert attached(server.url).text == "{}"


@pytest.mark.usefixtures("trusted")
def test_tls_is_spoken_with_the_name_at_the_address_that_was_judged(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("pages.test").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "pages.pem"))
    context.load_cert_chain(tmp_path / "pages.pem")
    context.sni_callback = lambda _, name, __: named.append(name)
    resolve = socket.getaddrinfo

    def at_loopback(_: str | bytes, port: int | None, *more: int) -> object:
        return resolve("127.0.0.1", port, *more)

    with Loopback(Reply(body=b"{}", headers=JSON), tls=context) as server:
        monkeypatch.setattr(socket, "getaddrinfo", at_loopback)
        url = server.url.replace("127.0.0.1", "pages.test")

        assert attached(url).text == "{}"
        assert (named, server.requests[0].headers["host"]) == (["pages.test"], url.removeprefix("https://"))
        assert "is not trusted" in failure(url.replace("pages", "others")).message


def name_by_hash(certificate: bytes) -> str:
    """How OpenSSL looks for a certificate in a directory: SHA-1 of its subject in lower case, without the header."""
    subject = x509.load_pem_x509_certificate(certificate).subject
    canonical = x509.Name([x509.NameAttribute(each.oid, str(each.value).lower()) for each in subject])
    digest = hashlib.sha1(canonical.public_bytes()[2:], usedforsecurity=False).digest()
    return f"{int.from_bytes(digest[:4], 'little'):08x}.0"


def test_a_directory_of_certificates_is_trusted_beside_a_bundle(
    authority: trustme.CA, tls: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    directory = tmp_path / "certificates"
    directory.mkdir()
    authority.cert_pem.write_to_path(str(directory / name_by_hash(authority.cert_pem.bytes())))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "other.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(directory))

    with Loopback(Reply(body=b"{}", headers=JSON), tls=tls) as server:
        assert attached(server.url).text == "{}"


def test_an_authority_that_is_not_known_is_not(tls: ssl.SSLContext) -> None:
    with Loopback(tls=tls) as server:
        error = failure(server.url)

        assert not server.requests
    assert "the certificate of '127.0.0.1' is not trusted" in error.message
    assert "SSL_CERT_FILE" in error.hint


@pytest.mark.usefixtures("trusted")
def test_a_certificate_for_another_name_is_refused(tls: ssl.SSLContext) -> None:
    with Loopback(tls=tls) as server:
        assert "is not trusted" in failure(server.url.replace("127.0.0.1", "localhost")).message


@pytest.mark.usefixtures("trusted")
def test_a_redirect_out_of_tls_is_refused(tls: ssl.SSLContext) -> None:
    with Loopback() as plain, Loopback(redirect(f"{plain.url}/x?token=abc"), tls=tls) as server:
        error = failure(server.url)

        assert not plain.requests
    assert error.message == f"'{server.url}/' redirects to '{plain.url}', which is not encrypted"


def test_a_server_without_tls_is_told() -> None:
    with Loopback() as server:
        assert "does not speak TLS" in failure(server.url.replace("http:", "https:")).message


def test_a_certificate_variable_that_names_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/at/all")
    error = failure("https://127.0.0.1:9")

    assert "SSL_CERT_FILE is '/nowhere/at/all'" in error.message


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback(Reply(body=b"x", headers=TEXT)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        attached("http://pages.test/x")

        assert proxy.requests[0].target == "http://pages.test/x"


@pytest.mark.parametrize("spared", ["*", "127.0.0.0/8", "127.0.0.1", "10.0.0.0/8, 127.0.0.1"])
def test_no_proxy_is_asked_for_what_is_spared(monkeypatch: pytest.MonkeyPatch, spared: str) -> None:
    with Loopback() as proxy, Loopback(Reply(body=b"x", headers=TEXT)) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", spared)

        assert attached(server.url).text == "x"
        assert not proxy.requests


def test_a_proxy_that_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback(Reply(status=407)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)

        assert "the proxy on the way to 'pages.test' refused" in failure("https://pages.test").message


@pytest.mark.parametrize("address", ["socks5://user:s3cret@127.0.0.1:9", "gopher://user:s3cret@127.0.0.1"])
def test_a_proxy_that_cannot_be_used_is_told_without_its_password(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", address)
    error = failure("http://pages.test")

    assert "proxy of the environment" in error.message
    assert "s3cret" not in error.message + error.hint
