from __future__ import annotations

import ssl
from pathlib import Path
from types import SimpleNamespace

import pytest

from jp.errors import ConfigurationError
from jp.tls import bare_context, context_for, trusting_context

CERTIFICATE = Path(__file__).parents[1] / "wire" / "loopback.pem"


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)


def system_directory(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    paths = SimpleNamespace(openssl_capath=str(path))
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)


def test_every_context_verifies() -> None:
    for context in (bare_context(), trusting_context()):
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname


def test_a_directory_of_roots_is_read_as_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"{number:08x}.0").write_text("", encoding="utf-8")
    system_directory(monkeypatch, tmp_path)

    assert trusting_context().cert_store_stats()["x509"] == 0


@pytest.mark.parametrize("exists", [True, False])
def test_a_directory_with_a_few_certificates_is_not_the_systems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, exists: bool
) -> None:
    directory = tmp_path / "certs"
    if exists:
        directory.mkdir()
        (directory / "9d66eef0.0").write_text("", encoding="utf-8")
    system_directory(monkeypatch, directory)
    asked: list[bool] = []
    monkeypatch.setattr("httpx2.create_ssl_context", lambda: asked.append(True) or bare_context())

    trusting_context()

    assert asked == [True]


def test_certificates_are_read_only_where_tls_is_spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    monkeypatch.setattr("urllib.request.getproxies", dict[str, str])

    assert context_for("http://localhost/v1").cert_store_stats()["x509"] == 0
    assert context_for("HTTPS://example.com").cert_store_stats()["x509"] == 1

    monkeypatch.setattr("urllib.request.getproxies", lambda: {"http": "https://proxy"})
    assert context_for("http://localhost/v1").cert_store_stats()["x509"] == 1


def test_a_bundle_of_ones_own_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))

    assert trusting_context().cert_store_stats()["x509"] == 1


def test_a_directory_of_ones_own_is_read_as_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))

    assert trusting_context().cert_store_stats()["x509"] == 0


def test_a_bundle_that_holds_no_certificates_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("no certificate", encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))

    with pytest.raises(ConfigurationError, match="SSL_CERT_FILE names") as caught:
        trusting_context()

    assert caught.value.hint == "correct or unset SSL_CERT_FILE"
