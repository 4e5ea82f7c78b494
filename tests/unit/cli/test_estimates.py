from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from jp.app.estimates import KnownError, known_error, learn
from jp.turn.measuring import Measured


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JP_USER_CACHE_DIR", raising=False)
    return tmp_path / "jp" / "estimates.json"


def test_nothing_is_known_of_a_model_that_never_answered() -> None:
    assert known_error("p/m") == KnownError(ratio=1.0, answers=0)


def test_every_answer_teaches_and_newer_ones_count_more() -> None:
    learn("p", [Measured("m", 1000, 1500)])
    assert known_error("p/m") == KnownError(ratio=1.5, answers=1)

    learn("p", [Measured("m", 1000, 1000), Measured("other", 1000, 1200)])
    assert known_error("p/m").answers == 2
    assert known_error("p/m").ratio == pytest.approx(1.35)
    assert known_error("p/other") == KnownError(ratio=1.2, answers=1)
    assert known_error("q/m").answers == 0


def test_tiny_requests_teach_nothing(path: Path) -> None:
    learn("p", [Measured("m", 20, 100)])

    assert not path.exists()


def test_nothing_is_written_where_there_is_no_news(path: Path) -> None:
    learn("p", [Measured("m", 1000, 1500)] * 3)
    written = path.stat().st_mtime_ns, path.read_bytes()

    learn("p", [])
    learn("p", [Measured("m", 1000, 1501)])
    assert (path.stat().st_mtime_ns, path.read_bytes()) == written

    learn("p", [Measured("m", 1000, 1600)])
    assert known_error("p/m").answers == 4
    assert [entry.name for entry in path.parent.iterdir()] == ["estimates.json"]


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"\xff\xfe", b'{"version":2,"models":{"p/m":[1.5,1]}}', b'{"version":1,"models":{"p/m":[1]}}'],
)
def test_a_file_that_cannot_be_read_is_as_good_as_none(content: bytes, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(content)

    assert known_error("p/m") == KnownError()
    learn("p", [Measured("m", 1000, 1500)])
    assert known_error("p/m") == KnownError(ratio=1.5, answers=1)


def test_a_ratio_that_somebody_wrote_stays_within_bounds(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'{"version":1,"models":{"p/m":{"ratio":900.0,"answers":3}}}')

    assert known_error("p/m") == KnownError(ratio=2.0, answers=3)


def test_it_never_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jp").write_text("a file where a directory should be", encoding="utf-8")

    learn("p", [Measured("m", 1000, 1500)])
    assert known_error("p/m") == KnownError()

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.path.expanduser", str)  # the system knows no home either
    learn("p", [Measured("m", 1000, 1500)])
    assert known_error("p/m") == KnownError()


def test_the_models_that_were_learned_last_are_kept(path: Path) -> None:
    for start in range(0, 250, 50):
        learn("p", [Measured(f"m{number}", 1000, 1500) for number in range(start, start + 50)])

    models = msgspec.json.decode(path.read_bytes())["models"]
    assert len(models) == 200
    assert list(models)[-1] == "p/m249"
    assert "p/m0" not in models
