from __future__ import annotations

import errno
import socket
import ssl

import httpx2
import pytest

from jp.errors import ConfigurationError, JpError
from jp.provider.errors import ProviderError
from jp.provider.transport import connection_error


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def kind_of(error: JpError) -> str:
    assert isinstance(error, ProviderError)
    return error.kind


def may_be_retried(error: JpError) -> bool:
    assert isinstance(error, ProviderError)
    return error.is_retryable


def refused() -> OSError:
    return OSError(errno.ECONNREFUSED, "refused")


def test_of_several_attempts_the_first_is_told() -> None:
    refused = OSError(errno.ECONNREFUSED, "Connect call failed")
    attempts = ExceptionGroup("attempts", [refused, OSError(errno.ENETUNREACH, "unreachable")])
    found = connection_error(caused(httpx2.ConnectError("all failed"), attempts), host="h", begun=False)

    assert found.message == "no connection to 'h': Connection refused"


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:1234", "[::1]:8000", "localhost"])
def test_nobody_on_this_machine_is_not_waited_for(host: str) -> None:
    found = connection_error(caused(httpx2.ConnectError(""), refused()), host=host, begun=False)

    assert kind_of(found) == "connect"
    assert not may_be_retried(found)


@pytest.mark.parametrize("host", ["api.example.com", "127.example.com", "10.0.0.3:8000"])
def test_a_server_elsewhere_that_refuses_may_be_back_in_a_moment(host: str) -> None:
    assert may_be_retried(connection_error(caused(httpx2.ConnectError(""), refused()), host=host, begun=False))
    reset = OSError(errno.ECONNRESET, "reset")
    assert may_be_retried(connection_error(caused(httpx2.ConnectError(""), reset), host="127.0.0.1", begun=False))


def test_without_a_cause_the_words_of_the_error_are_told() -> None:
    assert (
        connection_error(httpx2.ConnectError("all failed"), host="h", begun=False).message
        == "no connection to 'h': all failed"
    )


def test_a_broken_handshake_is_not_worth_a_retry() -> None:
    found = connection_error(caused(httpx2.ConnectError(""), ssl.SSLError(1, "odd")), host="h", begun=False)

    assert kind_of(found) == "other"


@pytest.mark.parametrize(("begun", "kind"), [(False, "connect"), (True, "cut")])
def test_what_breaks_off_is_cut_once_it_has_begun(kind: str, *, begun: bool) -> None:
    assert kind_of(connection_error(httpx2.ReadError(""), host="h", begun=begun)) == kind
    assert "ReadError" in connection_error(httpx2.ReadError(""), host="h", begun=begun).message
    assert kind_of(connection_error(ssl.SSLError(1, "bad record"), host="h", begun=begun)) == kind


@pytest.mark.parametrize(
    "error", [httpx2.UnsupportedProtocol(""), httpx2.InvalidURL(""), httpx2.LocalProtocolError("k")]
)
def test_what_cannot_be_sent_is_a_matter_of_configuration(error: Exception) -> None:
    assert isinstance(connection_error(error, host="h", begun=False), ConfigurationError)


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (caused(httpx2.ConnectError(""), socket.gaierror(socket.EAI_NONAME, "Name not known")), "check the network"),
        (caused(httpx2.ConnectError(""), OSError(errno.ECONNREFUSED, "refused")), "check the network"),
        (caused(httpx2.ConnectError(""), ssl.SSLError(1, "odd")), "if it speaks plain HTTP"),
        (httpx2.ProxyError("407"), "check HTTPS_PROXY"),
        (httpx2.ConnectTimeout(""), "connect_timeout_secs"),
        (httpx2.ReadTimeout(""), "stream_idle_timeout_secs"),
        (httpx2.ReadError(""), "try again in a while"),
        (httpx2.DecodingError(""), "try again in a while"),
        (httpx2.InvalidURL(""), "base_url"),
    ],
    ids=["DNS", "refused", "TLS", "proxy", "connect", "silence", "cut", "encoding", "address"],
)
def test_every_failure_on_the_way_has_a_hint(error: Exception, hint: str) -> None:
    assert hint in connection_error(error, host="h", begun=True).hint


@pytest.mark.parametrize("cause", [socket.gaierror(socket.EAI_NONAME, "Name not known"), refused()])
def test_behind_a_proxy_it_may_be_the_proxy_that_does_not_answer(
    cause: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://ada:secret@proxy.test:3128")

    hint = connection_error(caused(httpx2.ConnectError(""), cause), host="h", begun=False).hint

    assert hint.endswith("; the proxy in HTTPS_PROXY may not respond")
